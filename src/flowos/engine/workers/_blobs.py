"""Memory files as the engine sees them, and values that stay as they came from a worker."""

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from flowos.engine.workers._values import (
    PLAIN,
    Parcel,
    Slab,
    SlabPool,
    Span,
    TooLarge,
    forks,
    unpack,
)
from flowos.engine.workers.stream_worker import Arrived

BlobContent = Arrived | list[memoryview]
"""Of a file: memory that it came into, or views that it is sent from."""


class Blob:
    """A memory file that holds buffers of values. Once it is unused here and in all workers, its
    home gets the number, negated where the file must not be written again.

    fd: or the memory that it came into, from another node; or views, that are sent to one.
    """

    __slots__ = ("_forks", "_mine", "_on_delete", "fd", "number", "size", "spoiled")

    def __init__(
        self,
        fd: int | BlobContent,
        size: int,
        number: int,
        on_delete: Callable[[int], None],
        *,
        mine: bool,
    ) -> None:
        self.fd, self.size, self.number = fd, size, number
        self.spoiled = False
        self._on_delete = on_delete
        self._mine = mine
        self._forks = forks()

    def __del__(self) -> None:
        if isinstance(self.fd, int) and not self._mine:
            os.close(self.fd)
        written_again = not self.spoiled and self._forks == forks()
        self._on_delete(self.number if written_again else -self.number)


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
        """The value, over memory of its own."""
        blob = self.blob
        if blob is not None and not isinstance(blob.fd, int):
            whole = memoryview(blob.fd if isinstance(blob.fd, Arrived) else b"".join(blob.fd))
            copies = [bytearray(whole[start:end]) for start, end in self.spans]
            return pickle.loads(self.body or copies.pop(0), buffers=copies)
        return self.take()

    def take(self) -> Any:
        """The same, where nothing else is made of it: what came from a node is not copied."""
        blob = self.blob
        if blob is None:
            return unpack(self.body, ())
        if not isinstance(blob.fd, int):
            return unpack(self.body, self.spans, blob.fd)
        return unpack(self.body, self.spans, blob.fd, blob.size, blob)


class Unpackable(Exception):  # noqa: N818 - reads as what happened
    """(index of the value that cannot cross, why)."""


def pack(
    values: Sequence[object],
    parcel: Callable[[], Parcel],
    take: Callable[[int], tuple[int, Slab]],
    pool: SlabPool,
    *,
    once: bool = False,
) -> list[Any]:
    """Plain and packed values as they are, others packed; their buffers share one new blob.

    once: it is sent to another node, and nowhere else, before the values can change.
    """
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
        except TooLarge as error:
            raise Unpackable(len(wired), str(error)) from error
        except Exception as error:
            raise Unpackable(len(wired), f"{type(error).__name__}: {error}") from error
    blob = None
    if new.size and once:
        blob = Blob(new.views(), new.size, pool.number(), pool.returned.append, mine=True)
    elif new.size:
        try:
            number, slab = take(new.size)
        except MemoryError as error:
            first = next(i for i, v in enumerate(wired) if type(v) is tuple and v[1])
            raise Unpackable(first, str(error)) from error
        blob = Blob(slab.fd, new.size, number, pool.returned.append, mine=True)
        new.fill(slab)
    return [Packed(v[0], v[1], blob) if type(v) is tuple else v for v in wired]
