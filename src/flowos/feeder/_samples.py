"""The samples of a batch as they are: bytes of different lengths, in one buffer."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from flowos._dataclasses import dataclass

Int64s: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]


class Parts(Protocol):
    """What a native batch has."""

    @property
    def samples(self) -> Int64s: ...
    @property
    def offsets(self) -> Int64s: ...
    @property
    def lengths(self) -> Int64s: ...
    @property
    def data(self) -> Bytes: ...


@dataclass(frozen=True, slots=True)
class _Some:
    samples: Int64s
    offsets: Int64s
    lengths: Int64s
    data: Bytes


class Samples(Sequence[memoryview]):
    """Reads as a sequence of read-only memoryviews, none of which is a copy.

    The memory of the batch is used again when the last of them, and of the arrays below, is gone.
    """

    __slots__ = ("_ends", "_parts", "_view")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._view: memoryview | None = None
        self._ends: list[tuple[int, int]] = []

    @property
    def indices(self) -> Int64s:
        """Which samples of the data set they are: int64 (n,)."""
        return self._parts.samples

    @property
    def buffer(self) -> Bytes:
        """The bytes of all of them: uint8 (bytes,)."""
        return self._parts.data

    @property
    def offsets(self) -> Int64s:
        """Where in the buffer each begins: int64 (n,)."""
        return self._parts.offsets

    @property
    def lengths(self) -> Int64s:
        """How many bytes each has: int64 (n,)."""
        return self._parts.lengths

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, which: int) -> memoryview: ...
    @overload
    def __getitem__(self, which: slice) -> "Samples": ...
    def __getitem__(self, which: int | slice) -> "memoryview | Samples":
        if isinstance(which, slice):
            return Samples(
                _Some(self.indices[which], self.offsets[which], self.lengths[which], self.buffer)
            )
        if self._view is None:
            self._view = self._parts.data.data.toreadonly()
            starts, lengths = self._parts.offsets, self._parts.lengths
            self._ends = list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))
        start, end = self._ends[which]
        return self._view[start:end]

    def __repr__(self) -> str:
        return f"<{len(self)} samples, {int(self.lengths.sum())} bytes>"
