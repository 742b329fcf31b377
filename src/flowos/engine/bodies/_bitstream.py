"""The file with which a board is configured for a task in Verilog."""

import sys
from collections.abc import Sequence
from pathlib import Path

from flowos.drivers.hdl.boards import (
    BOARDS,
    PACKAGES,
    TOOLS,
    check_one_each,
    divisor,
    first_yosys_error,
    module_ports_of,
    pack,
    pins,
    place,
    read_ports,
    synthesize,
)
from flowos.drivers.hdl.module_face import Face, face_of
from flowos.drivers.hdl.sources import folder_links
from flowos.drivers.hdl.tops import OF_LINKS, board_top, top_of
from flowos.engine._ask import which
from flowos.engine.bodies._compile import asked, program_facts
from flowos.engine.bodies._kept import CompileFailed, Made, kept_file
from flowos.engine.bodies._simulated import (
    HDL_FILES,
    SimulatedModule,
    sources_in,
    verilated_face,
)
from flowos.engine.bodies._uart_module import UartModule
from flowos.engine.bodies._xdma_module import XdmaModule
from flowos.model import (
    Argv,
    EngineMissing,
    HdlDesign,
    NativeCode,
    Task,
    WiringError,
    brief_repr,
    files_of,
)

__flowos_frames__ = True


_BRIDGES = {
    "uart": ("frames.v", "uart_bridge.v"),
    "ftdi": ("frames.v", "ftdi_bridge.v"),
    "xdma": ("xdma_bridge.v",),
}


def bridge(link: str = "uart") -> str:
    """Our Verilog between a link and the streams of a module."""
    return "".join((HDL_FILES / name).read_text(encoding="utf-8") for name in _BRIDGES[link])


def top_file(design: HdlDesign, link: str) -> Path:
    """The Verilog of a design for a device of which the bitstream is made by other tools.

    Raises CompileFailed if the source is wrong, and EngineMissing if there is no Verilator.
    """
    ours = bridge(link)

    def make(made: Path) -> Made:
        top = made / f"{link}.v"
        face = verilated_face(design, made)
        top.write_text(ours + top_of(link, design, face), encoding="utf-8")
        return top, ()

    any_face = Face(clock="", reset="", reset_level=0)
    return kept_file((repr(design), ours, top_of(link, design, any_face)), make)


def bitstream(task: Task) -> Path:
    """The bitstream of a task that `fo.hdl` defined with a board, for `flowos device load`.

    It has the module behind a UART, as link="uart" speaks to. Made by Yosys and nextpnr, and kept
    in $XDG_CACHE_HOME/flowos/bodies. Raises CompileFailed if it cannot be made, EngineMissing if
    they are not there, WiringError for another task, or one of "ftdi" or "xdma".

    >>> try:
    ...     fo.bitstream(fo.kernels.sort)
    ... except fo.WiringError as error:
    ...     print(error)
    bitstream: <task sort(...) -> ...> (Kernel) is no task of fo.hdl with a board
    """
    body = getattr(task, "body", None)
    module = body.fun if isinstance(body, NativeCode) else None
    if isinstance(module, (UartModule, XdmaModule)) and (name := OF_LINKS.get(module.link)):
        raise WiringError(
            f"bitstream: for link={module.link!r} it is made by the tools of the device's vendor: "
            f"of {name}, which is in {top_file(module.design, module.link)}, and of the files of "
            f"{task.name!r}"
        )
    if not isinstance(module, (SimulatedModule, UartModule)) or not module.design.board:
        raise WiringError(f"bitstream: {brief_repr(task)} is no task of fo.hdl with a board")
    check_one_each(f"hdl {task.name!r}", module.design)
    return board_file(module.design)


def board_file(design: HdlDesign, given: str = "") -> Path:
    """The bitstream of a design with a board, or the file that was given.

    Raises CompileFailed if there is no such file or a tool refuses the design, and EngineMissing if
    a tool is not installed.
    """
    if given:
        if not Path(given).is_file():
            raise CompileFailed(f"there is no bitstream {given}")
        return Path(given)
    tools = [_tool(name) for name in TOOLS[BOARDS[design.board].family]]
    facts = map(program_facts, tools)
    return kept_file((repr(design), bridge(), *facts), lambda made: _made(design, tools, made))


def _tool(name: str) -> str:
    """As Debian has it, or as wheels of YoWASP do, next to this Python."""
    wheels = f"yowasp-{name}"
    beside = Path(sys.executable).with_name(wheels)
    found = which(name) or which(wheels) or (str(beside) if beside.is_file() else None)
    if found is None:
        package = PACKAGES.get(name)
        remedy = f"apt-get install {package}" if package else "pip install 'flowos-hpc[fpga]'"
        raise EngineMissing(f"there is no {name}: {remedy}")
    return found


def _made(design: HdlDesign, tools: Sequence[str], made: Path) -> Made:
    yosys, nextpnr, packer = tools
    board = BOARDS[design.board]
    folders = folder_links(design)
    files = sources_in(made, design, folders)
    for name, folder in folders.items():
        (made / name).symlink_to(folder)

    def take(argv: Argv) -> None:
        said = asked(argv, made)
        if said is not None:
            raise CompileFailed(first_yosys_error(said, design))

    take(read_ports(yosys, design.top, files, [*folders], "ports.json", "read.d"))
    read = _read((made / "read.d").read_text(encoding="utf-8"), made)
    ports = module_ports_of((made / "ports.json").read_text(encoding="utf-8"), design.top)
    top = board_top(design, face_of(ports, design), divisor(board, design.baud))
    for name, text in (("bridge.v", bridge()), ("top.v", top), ("board.pcf", pins(board))):
        (made / name).write_text(text, encoding="utf-8")
    take(synthesize(yosys, board, [*files, "bridge.v", "top.v"], [*folders], "netlist.json"))
    take(place(nextpnr, board, "netlist.json", "board.pcf", "placed.asc"))
    take(pack(packer, board, "placed.asc", "board.bin"))
    return made / "board.bin", read


def _read(rule: str, made: Path) -> list[str]:
    """What Yosys read, but for what we wrote."""
    found = ((made / name).resolve() for name in files_of(rule))
    return [str(file) for file in found if file.parent != made.resolve()]
