"""Boards with an iCE40 or ECP5: their UART, and bitstreams by Yosys and nextpnr."""

import json
import re
from collections.abc import Sequence

from flowos._dataclasses import dataclass
from flowos.drivers.hdl.module_face import ModulePorts
from flowos.drivers.hdl.sources import named_in, no_top, with_paths
from flowos.drivers.hdl.tops import BOARD
from flowos.model import Argv, HdlDesign, WiringError, alternatives, brief_repr

PACKAGES = {"yosys": "yosys", "nextpnr-ice40": "nextpnr-ice40", "icepack": "fpga-icestorm"}
"""Each program, and Debian's package of it."""
TOOLS = {
    "ice40": ("yosys", "nextpnr-ice40", "icepack"),
    "ecp5": ("yosys", "nextpnr-ecp5", "ecppack"),
}
"""Of each family: they synthesize, place and route, and pack. Debian has none of ECP5."""
_MIN_DIVISOR, _MAX_ERROR = 4, 0.02
_MAX_BITS = 8 * 255
_NO_FILE = re.compile(r"Can(?:not|'t| not) open (?:include )?file [`']([^`']*)[`']")
_TOO_LARGE = re.compile(r"no BELs remaining|Failed to expand region")
_YOSYS = re.compile(r"^(?P<where>\S[^\n]*?:\d+: )?ERROR: (?P<what>[^\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Pins as seen from the FPGA: it receives at `rx`."""

    part: str
    package: str
    clock_hz: int
    clk: str
    rx: str
    tx: str
    family: str = "ice40"


BOARDS = {
    "icebreaker": Board(part="up5k", package="sg48", clock_hz=12_000_000, clk="35", rx="6", tx="9"),
    "icestick": Board(part="hx1k", package="tq144", clock_hz=12_000_000, clk="21", rx="9", tx="8"),
    "ulx3s-25f": Board(
        part="25k",
        package="CABGA381",
        clock_hz=25_000_000,
        clk="G2",
        rx="M1",
        tx="L4",
        family="ecp5",
    ),
}


def check_board(where: str, name: object, baud: object) -> None:
    """Raises WiringError if there is no such board, or it has no such baud rate."""
    if not isinstance(baud, int) or baud <= 0:
        raise WiringError(f"{where}: baud={brief_repr(baud)}; expected a number above 0")
    if name is None:
        return
    if name not in BOARDS:
        raise WiringError(f"{where}: board={brief_repr(name)}; there is {alternatives([*BOARDS])}")
    try:
        divisor(BOARDS[name], baud)
    except ValueError as error:
        raise WiringError(f"{where}: board {name!r} has {error}") from None


def check_one_each(where: str, design: HdlDesign, link: str = "a serial line") -> None:
    """Raises WiringError if a link cannot carry its streams."""
    for kind, streams in (("into", design.takes), ("out", design.gives)):
        if len(streams) != 1:
            raise WiringError(
                f"{where}: {len(streams)} streams of {kind}=; {link} carries one each way"
            )
        if streams[0].bits > _MAX_BITS:
            raise WiringError(
                f"{where}: a beat of stream {streams[0].name!r} has {streams[0].bits} bits; over "
                f"{link} at most {_MAX_BITS}"
            )


def divisor(board: Board, baud: int) -> int:
    """Cycles of its clock for a bit. Raises ValueError if that is none."""
    cycles = round(board.clock_hz / baud)
    if cycles < _MIN_DIVISOR or abs(cycles * baud / board.clock_hz - 1) > _MAX_ERROR:
        raise ValueError(f"no {baud} baud from a clock of {board.clock_hz / 1e6:g} MHz")
    return cycles


def pins(board: Board) -> str:
    """The constraints of nextpnr."""
    places = {name: getattr(board, name) for name in ("clk", "rx", "tx")}
    if board.family == "ice40":
        return "".join(f"set_io {name} {place}\n" for name, place in places.items())
    return "".join(
        f'LOCATE COMP "{name}" SITE "{place}";\nIOBUF PORT "{name}" IO_TYPE=LVCMOS33;\n'
        for name, place in places.items()
    )


def read_ports(
    yosys: str, top: str, files: Sequence[str], folders: Sequence[str], to: str, read: str
) -> Argv:
    """Writes what the module looks like from outside, and to `read` which files were read for it.

    Names have no spaces: Yosys cuts there.
    """
    script = f"{_read(files, folders)}; hierarchy -top {top}; proc; json -o {to}"
    return (yosys, "-q", "-E", read, "-p", script)


def module_ports_of(text: str, top: str) -> ModulePorts:
    """From what `read_ports` wrote."""
    module = json.loads(text)["modules"].get(top, {})  # an empty one is not written
    ports = module.get("ports", {})
    return {name: (port["direction"], len(port["bits"])) for name, port in ports.items()}


def synthesize(
    yosys: str, board: Board, files: Sequence[str], folders: Sequence[str], to: str
) -> Argv:
    script = f"{_read(files, folders)}; synth_{board.family} -top {BOARD} -json {to}"
    return (yosys, "-q", "-p", script)


def place(nextpnr: str, board: Board, netlist: str, constraints: str, to: str) -> Argv:
    reads, writes = ("--pcf", "--asc") if board.family == "ice40" else ("--lpf", "--textcfg")
    return (
        *(nextpnr, "-q", f"--{board.part}", "--package", board.package, "--json", netlist),
        *(reads, constraints, writes, to, "--freq", f"{board.clock_hz / 1e6:g}", "--seed", "1"),
    )


def pack(packer: str, board: Board, placed: str, to: str) -> Argv:
    return (packer, placed, to, *(("--compress",) if board.family == "ecp5" else ()))


def first_yosys_error(said: str, design: HdlDesign) -> str:
    """Of Yosys or nextpnr, in one line."""
    if f"Module `{design.top}' not found" in said:
        return no_top(design)
    found = _YOSYS.search(said)
    line = f"{found['where'] or ''}{found['what']}" if found else ""
    if missing := _NO_FILE.search(line):
        place = named_in(design, missing[1]) or line.partition("Can")[0]
        line = f"{place}there is no file {missing[1]}"
    if _TOO_LARGE.search(line):
        line = f"module {design.top} is too large for {design.board}: {line}"
    return with_paths(line or (said.splitlines() or ["it said nothing"])[-1], design)


def _read(files: Sequence[str], folders: Sequence[str]) -> str:
    includes = "".join(f"-I{folder} " for folder in folders)
    return "; ".join(
        f"read_verilog {'-sv ' if file.endswith('.sv') else ''}{includes}{file}" for file in files
    )
