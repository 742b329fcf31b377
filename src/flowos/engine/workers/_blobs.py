"""Memory files as the engine sees them, and values that stay as they came from a worker."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from flowos.engine.workers._values import PLAIN, Parcel, Slab, SlabPool, Span, forks, unpack


class Blob:
    """A memory file that holds buffers of values. Once it is unused here and in all workers, its
    home gets the number, negated where the file must not be written again."""

    __slots__ = ("_forks", "_mine", "_tell", "fd", "number", "size", "spoiled")

    def __init__(
        self, fd: int, size: int, number: int, tell: Callable[[int], None], *, mine: bool
    ) -> None:
        self.fd, self.size, self.number = fd, size, number
        self.spoiled = False
        self._tell = tell
        self._mine = mine
        self._forks = forks()

    def __del__(self) -> None:
        if not self._mine:
            os.close(self.fd)
        written_again = not self.spoiled and self._forks == forks()
        self._tell(self.number if written_again else -self.number)


class Packed:
    """A value as it crosses: a pickle, and where in a blob its buffers are."""

    __slots__ = ("blob", "body", "spans")

    def __init__(self, body: bytes, spans: Sequence[Span], blob: Blob | None) -> None:
        self.body, self.spans = body, spans
        self.blob = blob if spans else None

    @property
    def nbytes(self) -> int:
        """Of the pickle and its buffers."""
        return len(self.body) + sum(end - start for start, end in self.spans)

    def open(self) -> Any:
        if self.blob is None:
            return unpack(self.body, ())
        return unpack(self.body, self.spans, self.blob.fd, self.blob.size, self.blob)


class Unpackable(Exception):  # noqa: N818 - reads as what happened
    """(index of the value that cannot be pickled, why)."""


def pack(
    values: Sequence[object],
    parcel: Callable[[], Parcel],
    take: Callable[[int], tuple[int, Slab]],
    pool: SlabPool,
) -> list[Any]:
    """Plain and packed values as they are, others packed; their buffers share one new blob."""
    for value in values:
        if type(value) not in PLAIN:
            break
    else:
        return list(values)
    new = parcel()
    wired: list[Any] = []
    for value in values:
        try:
            wired.append(value if type(value) is Packed else new.add(value))
        except Exception as error:
            raise Unpackable(len(wired), f"{type(error).__name__}: {error}") from error
    blob = None
    if new.size:
        number, slab = take(new.size)
        blob = Blob(slab.fd, new.size, number, pool.returned.append, mine=True)
        new.fill(slab)
    return [Packed(v[0], v[1], blob) if type(v) is tuple else v for v in wired]
