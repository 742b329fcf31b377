"""A module of Verilog that is simulated: Verilator makes it C++, which is compiled and called."""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flowos.drivers.hdl.module_face import Face, face_of
from flowos.drivers.hdl.sources import placed_text, source_folders, source_names
from flowos.drivers.hdl.verilator import (
    PACKAGE,
    PREFIX,
    WRITTEN,
    driver_code,
    driver_lengths,
    first_verilog_error,
    module_ports,
    stopped_words,
    verilate,
)
from flowos.engine._ask import which
from flowos.engine.bodies._compile import (
    answered,
    asked,
    compiled,
    compiler_words,
    library_of,
    program_facts,
)
from flowos.engine.bodies._kept import CompileFailed, Made, kept_file
from flowos.engine.bodies._native_function import address_in, invoker
from flowos.engine.bodies._prepared import BodyError, PreparedBody
from flowos.model import EngineMissing, HdlDesign, HdlStream, NativePorts, SourceCode, headers_of

__flowos_frames__ = True
HDL_FILES = Path(__file__).with_name("hdl")
_NO_END, _TOO_SHORT, _TOO_LONG = 1, 2, 3
_INSIDE = ("-fvisibility=hidden",)
"""Calls within a library are inlined."""
DriverCode = Callable[[HdlDesign, str], str]
"""The C++ that drives a design, whose class Verilator wrote with this header."""


class SimulatedModule(PreparedBody):
    """Each call has a module of its own, which is reset before it."""

    __slots__ = ("_library", "design", "limit_cycles", "ports")

    def __init__(self, design: HdlDesign, ports: NativePorts, limit_cycles: int | None) -> None:
        super().__init__()
        self.design, self.ports, self.limit_cycles = design, ports, limit_cycles
        self._library: ctypes.CDLL | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return SimulatedModule, (self.design, self.ports, self.limit_cycles)

    def _prepared(self) -> Callable[..., Any]:
        def code(design: HdlDesign, header: str) -> str:
            return driver_code(design, self.ports, face_of(module_ports(header), design))

        key = driver_code(self.design, self.ports, Face(clock="", reset="", reset_level=0))
        path = simulation(self.design, code, key)
        address = address_in(path, "flowos_run", f"module {self.design.top}")
        library = self._library = ctypes.CDLL(str(path))
        library.flowos_state.restype = ctypes.POINTER(ctypes.c_int64)
        library.flowos_stopped_by.restype = ctypes.c_char_p
        limit = -1 if self.limit_cycles is None else self.limit_cycles
        return invoker(address, self.ports, driver_lengths(self.design, limit), self._fail)

    def _fail(self, code: int) -> None:
        """What the thread's last run came to."""
        library, design = self._library, self.design
        assert library is not None
        cycles, fault, *counts = library.flowos_state()[: 2 + len(design.takes) + len(design.gives)]
        taken, given = counts[: len(design.takes)], counts[len(design.takes) :]
        where = f"module {design.top}"
        if code == _NO_END:
            moved = [*_moved(design.takes, taken, "took"), *_moved(design.gives, given, "gave")]
            raise BodyError(
                f"{where} gave no end within {cycles} cycles (limit_cycles): it {', '.join(moved)}"
            )
        if code in (_TOO_SHORT, _TOO_LONG):
            stream, beats = design.gives[fault], given[fault]
            raise BodyError(
                f"{where} ended stream {stream.name!r} after {beats} beats (tlast), before its "
                "output was full"
                if code == _TOO_SHORT
                else f"{where} gave no tlast with beat {beats} of stream {stream.name!r}, the last "
                "of its output"
            )
        by = library.flowos_stopped_by().decode(errors="replace")
        raise BodyError(f"{where} ended: {stopped_words(by, design)}")


def simulated_arguments(design: HdlDesign, ports: NativePorts) -> int:
    """How many the C++ is called with."""
    return len(ports.inputs) + len(driver_lengths(design, 0)) + len(ports.outputs)


def simulation(design: HdlDesign, code: DriverCode, key: str) -> Path:
    """The library of a module and the C++ that drives it. key: what that follows from, but for
    the header.

    Raises CompileFailed if a tool refuses the design, EngineMissing if there is no Verilator or
    compiler, and as `code` does.
    """
    verilator = _verilator()
    compiler = compiler_words("c++")

    def make(made: Path) -> Made:
        obj = _verilated(verilator, design, made)
        text = code(design, (obj / f"{PREFIX}.h").read_text(encoding="utf-8"))
        text += "".join(f'#include "{file.name}"\n' for file in sorted(obj.glob("*.cpp")))
        root = _root(verilator)
        runtime = str(library_of(_runtime(root)))
        flags = ("-I", str(obj), *_includes(root), *_INSIDE, "-w", runtime)
        driver = SourceCode(text=text, path="", language="c++", flags=flags)
        library, headers = compiled(driver, compiler[0], made)
        rule = (obj / f"{PREFIX}__ver.d").read_text(encoding="utf-8")
        included = [name for name in headers_of(rule) if Path(name).is_absolute()]
        read = [name for name in (*headers, *included) if not name.startswith(f"{made}/")]
        return library, [*dict.fromkeys(read), runtime]

    argv = verilate(verilator, design.top, (), ())
    words = (repr(design), key, *argv, *_INSIDE, program_facts(verilator), *compiler)
    return kept_file(words, make)


def verilated_face(design: HdlDesign, made: Path) -> Face:
    """Of a module, as Verilator reads its files in this empty folder.

    Raises CompileFailed if it refuses the design, EngineMissing if there is none.
    """
    header = _verilated(_verilator(), design, made) / f"{PREFIX}.h"
    return face_of(module_ports(header.read_text(encoding="utf-8")), design)


def sources_in(made: Path, design: HdlDesign, links: dict[str, str]) -> list[str]:
    """Writes the files of a design to a folder; their names there. links: see `placed_text`."""
    names = source_names(design)
    for name, (path, text) in zip(names, design.files, strict=True):
        (made / name).write_text(placed_text(name, path, text, links), encoding="utf-8")
    return names


def _verilator() -> str:
    verilator = which("verilator")
    if verilator is None:
        raise EngineMissing(f"there is no verilator: apt-get install {PACKAGE}")
    return verilator


def _verilated(verilator: str, design: HdlDesign, made: Path) -> Path:
    """The folder of what Verilator wrote."""
    argv = verilate(verilator, design.top, sources_in(made, design, {}), source_folders(design))
    said = asked(argv, made)
    if said is not None:
        raise CompileFailed(first_verilog_error(said, design))
    return made / WRITTEN


def _root(verilator: str) -> str:
    answer = answered([verilator, "--getenv", "VERILATOR_ROOT"], None)
    return answer.stdout.decode().strip()


def _includes(root: str) -> tuple[str, ...]:
    return ("-I", f"{root}/include", "-I", f"{root}/include/vltstd", "-I", str(HDL_FILES))


def _runtime(root: str) -> SourceCode:
    """Verilator's own library: compiled once for all modules."""
    text = (HDL_FILES / "verilated_runtime.cpp").read_text(encoding="utf-8")
    return SourceCode(text=text, path="", language="c++", flags=(*_includes(root), "-O1", "-w"))


def _moved(streams: Sequence[HdlStream], counts: Sequence[int], did: str) -> list[str]:
    return [f"{did} {n} beats of {s.name!r}" for s, n in zip(streams, counts, strict=True)]
