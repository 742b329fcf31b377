"""One epoch of a feed: what a `for` statement goes through. What costs time per batch is here."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from flowos.feeder._arrays import Convert
from flowos.feeder._decoding import Decoded
from flowos.feeder._labels import Values
from flowos.feeder._samples import Samples
from flowos.feeder._source_options import Record
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Batch

EpochPair: TypeAlias = tuple[Any, Any]
Take: TypeAlias = Callable[[], Any]
"""What is next, or None: the epoch is at its end."""
Give: TypeAlias = Callable[[Any], EpochPair]
"""From what was taken to what a person gets."""


class Epoch(Iterator[EpochPair]):
    """The batches of one epoch for one rank; `len` says how many are still to come.

    number: of the epoch. start: how many samples of it all ranks had taken before. taken: how many
    batches this rank has taken since. An error is raised once: after it the epoch is at its end,
    and what comes after the last batch that was taken is another epoch's, or is taken again.
    """

    __slots__ = ("_batches", "_ended", "_give", "_take", "number", "start", "taken")

    def __init__(
        self,
        number: int,
        start: int,
        batches: int,
        take: Take,
        give: Give,
        ended: Callable[[], None],
    ) -> None:
        self.number, self.start, self.taken = number, start, 0
        self._batches, self._take, self._give, self._ended = batches, take, give, ended

    def __len__(self) -> int:
        return max(0, self._batches - self.taken)

    def __next__(self) -> EpochPair:
        try:
            got = self._take()
            if got is not None:
                pair = self._give(got)
                self.taken += 1
                return pair
        except Exception:
            self._take = self._ended = _nothing
            raise
        ended, self._take, self._ended = self._ended, _nothing, _nothing
        ended()
        raise StopIteration

    def refuse(self, why: str) -> None:
        """From here on it cannot go on. One that is at its end stays so."""

        def refused() -> NoReturn:
            raise FeedError(why)

        if self._take is not _nothing:
            self._take = refused


class Giver:
    """From native batches to what a person gets, with as little as can be done.

    record: type and shape of a sample, where all are equal and built natively.
    """

    def __init__(
        self, record: Record | None, values: Values | None, convert: Convert | None
    ) -> None:
        self._record, self._values, self._convert = record, values, convert
        self._labels = _labels_by(values, convert)

    @property
    def natively(self) -> Give:
        """Batches from native code."""
        return self._samples if self._record is None else self._array

    def decoded(self, got: Decoded) -> EpochPair:
        """Batches of a user function."""
        made, indices = got
        convert, labels = self._convert, None if self._values is None else self._values[indices]
        if convert is None:
            return made, labels
        if isinstance(made, np.ndarray):
            made = convert(made)
        else:
            made = [convert(one) if isinstance(one, np.ndarray) else one for one in made]
        return made, None if labels is None else convert(labels)

    def _samples(self, batch: "Batch") -> EpochPair:
        return Samples(batch), self._labels(batch)

    def _array(self, batch: "Batch") -> EpochPair:
        record = self._record
        assert record
        whole = batch.data.view(record.dtype).reshape(-1, *record.shape)
        return self._convert(whole) if self._convert else whole, self._labels(batch)


def _labels_by(values: Values | None, convert: Convert | None) -> Callable[["Batch"], Any]:
    if values is None:
        return lambda _: None
    from flowos._native import Labels

    of = Labels(values).of
    return of if convert is None else lambda batch: convert(of(batch))


def _nothing() -> None:
    return None
