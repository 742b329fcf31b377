"""One epoch of a feed: what a `for` statement goes through. What costs time per batch is here."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowos.feeder._arrays import Convert
from flowos.feeder._asked import Record
from flowos.feeder._decoding import Ahead
from flowos.feeder._labels import Values
from flowos.feeder._samples import Samples
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Batch

    NextBatch: TypeAlias = Callable[[], Batch | None]

Pair: TypeAlias = tuple[Any, Any]
NextPair: TypeAlias = Callable[[], Pair | None]


class Epoch(Iterator[Pair]):
    """The batches of one epoch for one rank; `len` says how many are still to come.

    number: of the epoch. start: how many samples of it all ranks had taken before. taken: how many
    batches this rank has taken since.
    """

    __slots__ = ("_batches", "_ended", "_next", "number", "start", "taken")

    def __init__(
        self, number: int, start: int, batches: int, pairs: NextPair, ended: Callable[[], None]
    ) -> None:
        self.number, self.start, self.taken = number, start, 0
        self._batches, self._next, self._ended = batches, pairs, ended

    def __len__(self) -> int:
        return max(0, self._batches - self.taken)

    def __next__(self) -> Pair:
        pair = self._next()
        if pair is None:
            self._next = _nothing
            self._ended()
            raise StopIteration
        self.taken += 1
        return pair

    def refuse(self, why: str) -> None:
        """From here on it cannot go on. One that is at its end stays so."""

        def refused() -> NoReturn:
            raise FeedError(why)

        if self._next is not _nothing:
            self._next = refused


class Giver:
    """From native batches to what a person gets, with as little as can be done.

    record: what each sample is, where all are equal and native code made them so.
    """

    def __init__(
        self, record: Record | None, values: Values | None, convert: Convert | None
    ) -> None:
        self._record, self._values, self._convert = record, values, convert

    def natively(self, next_batch: "NextBatch") -> NextPair:
        """As native code made them."""
        take = self._samples if self._record is None else self._array

        def pair() -> Pair | None:
            batch = next_batch()
            return None if batch is None else take(batch)

        return pair

    def decoded(self, ahead: Ahead) -> NextPair:
        """As a person's function made them."""

        def pair() -> Pair | None:
            got = ahead.take()
            return None if got is None else self._made(*got)

        return pair

    def _samples(self, batch: "Batch") -> Pair:
        indices = batch.samples
        return Samples(batch, indices), self._labels(indices)

    def _array(self, batch: "Batch") -> Pair:
        record, indices = self._record, batch.samples
        assert record
        whole = batch.data.view(record.dtype).reshape(len(indices), *record.shape)
        return self._convert(whole) if self._convert else whole, self._labels(indices)

    def _made(self, values: NDArray[Any] | list[object], indices: NDArray[np.int64]) -> Pair:
        convert = self._convert
        if convert is None:
            return values, self._labels(indices)
        if isinstance(values, np.ndarray):
            return convert(values), self._labels(indices)
        made = [convert(v) if isinstance(v, np.ndarray) else v for v in values]
        return made, self._labels(indices)

    def _labels(self, indices: NDArray[np.int64]) -> Any:
        if self._values is None:
            return None
        chosen = self._values[indices]
        return self._convert(chosen) if self._convert else chosen


def _nothing() -> None:
    return None
