"""Arrays that stay where an engine made them, from one of its tasks to the next."""

from collections.abc import Callable
from math import prod
from typing import Any

_ON_HOST = (1, 0)
"""kDLCPU, and its number."""


class EngineArray:
    """An array in the memory of a device, as `memory` says in the engine's own way.

    place: the engine whose memory it is. Only bodies of this engine are given one; all else gets an
    array of NumPy, `on_host`. By DLPack, too, it is given away on the host, that of a GPU as well.
    """

    __slots__ = ("_host", "_read", "dtype", "memory", "place", "shape")

    def __init__(
        self,
        memory: Any,
        shape: tuple[int, ...],
        dtype: Any,
        read: Callable[["EngineArray"], Any],
        place: str,
    ) -> None:
        self.memory, self.shape, self.dtype, self.place = memory, shape, dtype, place
        self._read, self._host = read, None

    @property
    def nbytes(self) -> int:
        return int(self.dtype.itemsize) * prod(self.shape)

    def on_host(self) -> Any:
        """Copied by the first call."""
        if self._host is None:
            self._host = self._read(self)
        return self._host

    def __dlpack__(self, **options: Any) -> Any:
        """Of `on_host`, as NumPy gives it: one copy, however often it is asked for."""
        return self.on_host().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _ON_HOST

    def __repr__(self) -> str:
        return f"an array of {self.dtype}, shape {self.shape}"


def on_host(value: Any) -> Any:
    """The value, as tasks of other engines are given it."""
    return value.on_host() if type(value) is EngineArray else value
