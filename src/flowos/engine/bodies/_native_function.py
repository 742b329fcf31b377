"""A function of a compiled library, called with the values of a task."""

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowos._native import native_call
from flowos.engine.bodies._compile import CompileFailed, library_of
from flowos.model import (
    Array,
    Floating,
    NativePorts,
    Place,
    PortMisfit,
    PortSpec,
    SourceCode,
    dtype_of,
    misses_c_abi,
    shape_of,
)

__flowos_frames__ = True
_Extent = tuple[int, int]
"""As `native_call` wants one: (input, axis), (input, -1) for its value, (-1, size)."""
_making = threading.Lock()
_libraries: dict[str, ctypes.CDLL] = {}


class BodyError(Exception):
    """A body returned something else than 0."""


class NativeFunction:
    """Called with the values of a task's inputs, gives those of its outputs.

    Its library is compiled, or found in the cache, when it is called first in a process.
    """

    __slots__ = ("_call", "code", "entry", "ports")

    def __init__(self, code: SourceCode, entry: str, ports: NativePorts) -> None:
        self.code, self.entry, self.ports = code, entry, ports
        self._call: Callable[..., Any] | None = None

    def __call__(self, *values: Any) -> Any:
        return (self._call or self._ready())(*values)

    def __reduce__(self) -> tuple[object, ...]:
        return NativeFunction, (self.code, self.entry, self.ports)

    def _ready(self) -> Callable[..., Any]:
        with _making:
            if self._call is None:
                self._call = self._loaded()
        return self._call

    def _loaded(self) -> Callable[..., Any]:
        ports = self.ports
        firsts = {name: _extent(places[0]) for name, places, _ in ports.extents}
        call: Callable[..., Any] = native_call(
            _address(library_of(self.code), self.entry, self.code.name),
            "".join(map(_kind, ports.inputs)),
            [(firsts[n], _extent(p)) for n, places, _ in ports.extents for p in places],
            [firsts[name] for name in ports.lengths],
            [(dtype_of(p.type), _shape(p, firsts)) for p in ports.outputs],
            self._refuse,
            self._fail,
        )
        return call

    def _refuse(self, values: Sequence[object]) -> None:
        self.ports.sizes(values)
        raise PortMisfit("its extents disagree")

    def _fail(self, code: int) -> None:
        raise BodyError(f"{self.entry} returned {code}")


def _kind(port: PortSpec) -> str:
    if isinstance(port.type, Array):
        return "a"
    if isinstance(port.type, Floating):
        return "f" if port.type.code == "f" else "d"
    return "i"


def _extent(place: Place) -> _Extent:
    _, number, axis, _ = place
    return number, -1 if axis is None else axis


def _shape(port: PortSpec, firsts: Mapping[str, _Extent]) -> list[_Extent]:
    extents = shape_of(port.type)
    return [firsts[n] if isinstance(n, str) else (-1, int(n or 0)) for n in extents]


def _address(library: Path, entry: str, name: str) -> int:
    """Where the function is in this process. Raises CompileFailed if it is not."""
    try:
        loaded = _libraries.get(str(library)) or ctypes.CDLL(str(library))
    except OSError as error:
        why = str(error).removeprefix(f"{library}: ")
        raise CompileFailed(f"the library of {name} cannot be loaded: {why}") from None
    _libraries[str(library)] = loaded
    try:
        return ctypes.cast(getattr(loaded, entry), ctypes.c_void_p).value or 0
    except AttributeError:
        remedy = misses_c_abi(entry, library.read_bytes())
        raise CompileFailed(
            f"{name} has no function {entry} with the C ABI{'; ' if remedy else ''}{remedy}"
        ) from None
