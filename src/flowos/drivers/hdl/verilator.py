"""Verilator: a module of Verilog as C++, and what drives its streams there."""

import json
import re
from collections.abc import Iterator, Sequence

from flowos.drivers.hdl.module_face import Direction, Face, ModulePorts
from flowos.drivers.hdl.sources import named_in, no_top, source_folders, with_paths
from flowos.model import (
    CYCLES_A_BEAT,
    MIN_CYCLES,
    Argv,
    Array,
    HdlDesign,
    HdlStream,
    NativePorts,
    PortSpec,
    dtype_of,
)

PREFIX = "Vmodule"
"""Of the class and the files that it writes, whatever the module is called."""
WRITTEN = "written"
PACKAGE = "verilator"
_PORT = re.compile(
    r"VL_(IN|OUT|INOUT)(?:8|16|64|W)?\(\(?&(\w+)\)?(?:\[\d+\])*,(\d+),(\d+)(?:,\d+)?\);"
)
_DIRECTIONS: dict[str, Direction] = {"IN": "input", "OUT": "output", "INOUT": "inout"}
_ERROR = re.compile(r"^%Error(?:-[A-Z]\w*)?: (?P<what>[^\n]*)", re.MULTILINE)
_NO_FILE = re.compile(r"^there is no file (.*)$")
_DELAY = re.compile(r"Use --timing or --no-timing .*")
_NO_TOP = re.compile(r"Specified --top-module '[^']*' was not found")


def verilate(verilator: str, top: str, files: Sequence[str], includes: Sequence[str]) -> Argv:
    """Writes C++ to the folder WRITTEN. Only errors are said: what is doubtful is legal Verilog."""
    return (
        *(verilator, "--cc", "--prefix", PREFIX, "--top-module", top, "--Mdir", WRITTEN),
        *("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert"),
        *("-Wno-fatal", "-Wno-lint", "-Wno-style"),
        *(f"-I{include}" for include in includes),
        *files,
    )


def module_ports(header: str) -> ModulePorts:
    """Of the class that Verilator wrote."""
    return {
        name: (_DIRECTIONS[direction], int(high) - int(low) + 1)
        for direction, name, high, low in _PORT.findall(header)
    }


def first_verilog_error(said: str, design: HdlDesign) -> str:
    """Of Verilator, in one line."""
    if _NO_TOP.search(said):
        return no_top(design)
    found = _ERROR.search(said)
    line = found["what"] if found else (said.splitlines() or ["it said nothing"])[-1]
    return with_paths(_DELAY.sub("a delay (#) is nothing that hardware has", line), design)


def driver_code(design: HdlDesign, ports: NativePorts, face: Face) -> str:
    """The C++ that is compiled with the module: its streams for the templates of `stream_sim.h`,
    and a function with the C ABI that is called as `driver_lengths` says."""
    streams = (*design.takes, *design.gives)
    return "\n".join(
        [
            f'#include "{PREFIX}.h"',
            f"#define FLOWOS_CLOCK {face.clock}",
            *([f"#define FLOWOS_RESET {face.reset}"] if face.reset else []),
            f"#define FLOWOS_RESET_LEVEL {face.reset_level}",
            f"#define FLOWOS_FOLDERS {', '.join(map(_c_string, source_folders(design)))}",
            f"#define FLOWOS_LEAST_CYCLES {MIN_CYCLES}",
            f"#define FLOWOS_CYCLES_A_BEAT {CYCLES_A_BEAT}",
            '#include "stream_sim.h"',
            *(f"FLOWOS_STREAM({stream.name})" for stream in streams),
            'extern "C" __attribute__((visibility("default")))',
            f"int flowos_run({', '.join(_parameters(ports, streams))}) {{",
            "  using namespace flowos_sim;",
            "  return run(limit,",
            f"             std::tuple{{{_members('Source', design.takes, 'i', ports.inputs, 0)}}},",
            f"             std::tuple{{"
            f"{_members('Sink', design.gives, 'o', ports.outputs, len(design.takes))}}});",
            "}",
            "",
        ]
    )


def stopped_words(by: str, design: HdlDesign) -> str:
    """What ended a run, with the person's names of the files."""
    missing = _NO_FILE.search(by)
    said = with_paths((named_in(design, missing[1]) if missing else "") + by, design)
    return said.replace("\n", " ").strip()


def driver_lengths(design: HdlDesign, limit_cycles: int) -> list[str | int]:
    """What `flowos_run` is called with between inputs and outputs: the limit, below 0 for that of
    so many beats, and the shape of each stream."""
    return [limit_cycles, *(n for s in (*design.takes, *design.gives) for n in s.shape)]


def _parameters(ports: NativePorts, streams: Sequence[HdlStream]) -> Iterator[str]:
    for number, port in enumerate(ports.inputs):
        array = isinstance(port.type, Array)
        yield f"{'const void*' if array else _c_type(port)} i{number}"
    yield "std::int64_t limit"
    for number, stream in enumerate(streams):
        yield from (f"std::int64_t d{number}_{axis}" for axis in range(len(stream.shape)))
    yield from (f"void* o{number}" for number in range(len(ports.outputs)))


def _members(
    kind: str, streams: Sequence[HdlStream], letter: str, ports: Sequence[PortSpec], first: int
) -> str:
    """A source or a sink for each stream: how many beats, and where each lane begins."""
    found = []
    for number, stream in enumerate(streams, first):
        beats = " * ".join(f"d{number}_{axis}" for axis in range(len(stream.shape))) or "1"
        widths = ", ".join(map(str, stream.widths))
        lanes = ", ".join(_lane(letter, n, ports[n]) for n in stream.lanes)
        found.append(f"{kind}<{stream.name}_face, {widths}>{{{beats}, {{{{{lanes}}}}}}}")
    return ", ".join(found)


def _lane(letter: str, number: int, port: PortSpec) -> str:
    """A scalar among the inputs is the same in each beat."""
    if isinstance(port.type, Array) or letter == "o":
        return f"moving({letter}{number})"
    return f"fixed(&{letter}{number})"


def _c_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _c_type(port: PortSpec) -> str:
    name = dtype_of(port.type)
    return {"float32": "float", "float64": "double"}.get(name, f"std::{name}_t")
