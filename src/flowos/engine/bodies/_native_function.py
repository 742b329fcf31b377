"""A function of a compiled library, called with the values of a task."""

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowos._native import native_call
from flowos.engine.bodies._compile import kept_type, library_of
from flowos.engine.bodies._kept import CompileFailed
from flowos.engine.bodies._prepared import BodyError, PreparedBody
from flowos.model import (
    Array,
    AxisRef,
    EngineMissing,
    Floating,
    NativeEntry,
    NativePorts,
    PortIncompatible,
    PortSpec,
    SourceCode,
    alternatives,
    dtype_of,
    misses_c_abi,
    shape_of,
)

__flowos_frames__ = True
_Extent = tuple[int, int]
"""As `native_call` wants one: (input, axis), (input, -1) for its value, (-1, size)."""
_MACHINES = ("x86_64", "aarch64")
_libraries: dict[str, ctypes.CDLL] = {}


class NativeFunction(PreparedBody):
    """Its library is compiled, or found in the cache, when it is called first in a process."""

    __slots__ = ("code", "entry", "ports")

    def __init__(self, code: SourceCode, entry: str, ports: NativePorts) -> None:
        super().__init__()
        self.code, self.entry, self.ports = code, entry, ports

    def __reduce__(self) -> tuple[object, ...]:
        return NativeFunction, (self.code, self.entry, self.ports)

    def _prepared(self) -> Callable[..., Any]:
        address = address_in(library_of(self.code), self.entry, self.code.name)
        has = kept_type(self.code, self.entry)
        if why := NativeEntry(self.entry, self.code.language).misfit(self.ports, has):
            raise CompileFailed(f"{self.code.name}: {why}")
        return invoker(address, self.ports, self.ports.lengths, self._fail)

    def _fail(self, code: int) -> None:
        raise BodyError(f"{self.entry} returned {code}")


def invoker(
    address: int,
    ports: NativePorts,
    lengths: Sequence[str | int],
    failed: Callable[[int], None],
) -> Callable[..., Any]:
    """Calls the function there. lengths: the integers between its inputs and its outputs, each an
    extent's name or a number. failed: raises for what it returned, if that is not 0.

    Raises EngineMissing if the ABI of this machine is not known.
    """
    if (machine := os.uname().machine) not in _MACHINES:
        raise EngineMissing(f"functions are called on {alternatives(_MACHINES)}, this is {machine}")
    firsts = {name: _extent(places[0]) for name, places, _ in ports.extents}

    def refuse(values: Sequence[object]) -> None:
        ports.sizes(values)
        raise PortIncompatible("its extents disagree")

    call: Callable[..., Any] = native_call(
        address,
        "".join(map(_kind, ports.inputs)),
        [(firsts[n], _extent(p)) for n, places, _ in ports.extents for p in places],
        _sizes(lengths, firsts),
        [(dtype_of(p.type), _sizes(shape_of(p.type), firsts)) for p in ports.outputs],
        refuse,
        failed,
    )
    return call


def _kind(port: PortSpec) -> str:
    if isinstance(port.type, Array):
        return "a"
    if isinstance(port.type, Floating):
        return "f" if port.type.code == "f" else "d"
    return "i"


def _extent(place: AxisRef) -> _Extent:
    _, number, axis, _ = place
    return number, -1 if axis is None else axis


def _sizes(extents: Sequence[int | str | None], firsts: Mapping[str, _Extent]) -> list[_Extent]:
    return [firsts[n] if isinstance(n, str) else (-1, int(n or 0)) for n in extents]


def address_in(library: Path, entry: str, name: str) -> int:
    """Where the function is in this process. Raises CompileFailed if it is not."""
    try:
        loaded = _libraries.get(str(library)) or ctypes.CDLL(str(library))
    except OSError as error:
        why = str(error).removeprefix(f"{library}: ")
        raise CompileFailed(f"the library of {name} cannot be loaded: {why}") from None
    _libraries[str(library)] = loaded
    try:
        address = ctypes.cast(getattr(loaded, entry), ctypes.c_void_p).value or 0
    except AttributeError:
        remedy = misses_c_abi(entry, library.read_bytes())
        raise CompileFailed(
            f"{name} has no function {entry} with the C ABI{'; ' if remedy else ''}{remedy}"
        ) from None
    if not _is_code(address):
        raise CompileFailed(f"{name}: {entry} is a variable, not a function")
    return address


def _is_code(address: int) -> bool:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, rights = line.split()[:2]
        low, high = (int(end, 16) for end in span.split("-"))
        if low <= address < high:
            return "x" in rights
    return False
