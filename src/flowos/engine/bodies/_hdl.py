"""Defines tasks whose body is a module of Verilog."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flowos._dataclasses import replace
from flowos.drivers.hdl.boards import PACKAGES, check_board, check_one_each
from flowos.drivers.hdl.verilator import PACKAGE
from flowos.engine._ask import which
from flowos.engine.bodies._cxx import check_callable
from flowos.engine.bodies._native_task import native_task
from flowos.engine.bodies._serial_line import BAUDS
from flowos.engine.bodies._simulated import SimulatedModule, simulated_arguments
from flowos.engine.bodies._source import header_digests, read_source
from flowos.engine.bodies._uart_module import UartModule
from flowos.engine.bodies._xdma_module import XdmaModule
from flowos.model import (
    STREAM_DTYPES,
    HdlDesign,
    NativePorts,
    Needs,
    Task,
    WiringError,
    alternatives,
    brief_repr,
    native_ports,
    quoted_words,
    streams_of,
)

_LINKS = ("sim", "uart", "ftdi", "xdma")
_NAMES = {"uart": "a serial line", "ftdi": "a FIFO", "xdma": "XDMA"}
_PORTS = {"uart": "/dev/ttyUSB1", "ftdi": "i:0x0403:0x6014", "xdma": "/dev/xdma0"}
_NOWHERE = Path(os.devnull)
"""The folder of code that has no file: it reads what has a whole name."""
_Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_Streams = Mapping[str, str | Sequence[str]]


def hdl(  # noqa: PLR0913 - options of a task, all by keyword
    files: _Files,
    top: str,
    *,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    into: _Streams,
    out: _Streams,
    link: str = "sim",
    board: str | None = None,
    port: str | None = None,
    bitstream: str | os.PathLike[str] | None = None,
    baud: int = 1_000_000,
    limit_cycles: int | None = None,
    name: str | None = None,
    needs: Needs | Sequence[Needs] | None = None,
    limit_seconds: float | None = None,
    retries: int = 0,
    requeue: bool = True,
    cache: bool | str | None = None,
) -> Task:
    """A task whose body is a module of Verilog with AXI streams.

    files: paths, or the code itself. top: the module. It has a clock aclk (or clk), a reset aresetn
    (or resetn, or rst, which is high), and for each stream s: s_tdata, s_tvalid, s_tready, s_tlast.
    into: for each stream that it takes the inputs whose elements a beat carries side by side, the
    first in the lowest bits, such as {"s": ("a", "b")}; a scalar is the same in each beat. out: the
    same of its outputs, such as {"m": "sum"}. tlast is with the last beat.
    link: "sim" is Verilator, "uart" a board on the serial line `port` at `baud`, "ftdi" one at the
    FIFO of an FT232H, "xdma" a card of Xilinx. board: which one, such as "icebreaker". bitstream: a
    file instead of that of `fo.bitstream`. A slice loads an FPGA of flowos.toml with it. name: by
    default top. limit_cycles: by default 100,000, and 100 a beat. Others: see `task`.
    Raises WiringError for ports, streams or a link that cannot be, or a file that cannot be read.

    >>> words = fo.array(fo.uint32, ("n",))
    >>> code = '''module inverted (input aclk, input aresetn, input [31:0] s_tdata,
    ...   input s_tvalid, output s_tready, input s_tlast, output [31:0] m_tdata, output m_tvalid,
    ...   input m_tready, output m_tlast); assign {m_tdata, m_tvalid, m_tlast, s_tready} =
    ...   {~s_tdata, s_tvalid, s_tlast, m_tready}; endmodule'''
    >>> streams = {"into": {"s": "x"}, "out": {"m": "y"}}
    >>> fo.hdl(code, "inverted", inputs={"x": words}, outputs={"y": words}, **streams)
    <task inverted(x: array(uint32, ('n',))) -> y: array(uint32, ('n',))>
    """
    title = name or str(top)
    where = f"hdl {title!r}"
    _check(where, top, limit_cycles, board, baud)
    ports = native_ports(where, inputs, outputs, STREAM_DTYPES)
    design = _design(where, files, top, ports, (into, out), (board, baud))
    body = _body(where, design, ports, link, (port, bitstream), limit_cycles)
    return native_task(title, ports, body, "hdl", (needs, limit_seconds, retries, requeue, cache))


def _check(where: str, top: object, limit_cycles: object, board: object, baud: object) -> None:
    if not isinstance(top, str) or not top.isidentifier():
        raise WiringError(f"{where}: top={brief_repr(top)}; expected the name of a module")
    in_range = type(limit_cycles) is int and 0 < limit_cycles < 2**63
    if limit_cycles is not None and not in_range:
        raise WiringError(
            f"{where}: limit_cycles={brief_repr(limit_cycles)}; expected a number above 0, "
            "below 2**63"
        )
    check_board(where, board, baud)


def hdl_packages() -> tuple[str, ...]:
    """Debian's packages that bodies in Verilog need and that are not installed here."""
    programs = {"verilator": PACKAGE, **PACKAGES}
    return tuple(package for program, package in programs.items() if which(program) is None)


def _design(
    where: str,
    files: _Files,
    top: str,
    ports: NativePorts,
    streams: tuple[object, object],
    board: tuple[str | None, int],
) -> HdlDesign:
    takes, gives = streams_of(where, ports, *streams)
    several = isinstance(files, Sequence) and not isinstance(files, str)
    found = [read_source(where, file) for file in (files if several else (files,))]  # type: ignore[union-attr]
    if not found:
        raise WiringError(f"{where}: files=[]; expected paths, or code")
    paths = [path for _, path in found if path]
    if twice := next((path for path in paths if paths.count(path) > 1), ""):
        raise WiringError(f"{where}: {twice} is given twice")
    seen: set[tuple[Path, bool]] = set()
    of_files = ((text, Path(path).parent if path else _NOWHERE) for text, path in found)
    headers = [
        each for text, at in of_files for each in header_digests(text, at, seen, quoted_words)
    ]
    return HdlDesign(
        files=tuple((path, text) for text, path in found),
        top=top,
        takes=takes,
        gives=gives,
        headers=tuple(headers),
        board=board[0] or "",
        baud=board[1],
    )


def _body(
    where: str,
    design: HdlDesign,
    ports: NativePorts,
    link: str,
    on: tuple[str | None, str | os.PathLike[str] | None],
    limit_cycles: int | None,
) -> SimulatedModule | UartModule | XdmaModule:
    """on: the port and the bitstream of a board."""
    port, file = on
    if link not in _LINKS:
        raise WiringError(f"{where}: link={brief_repr(link)}; there is {alternatives(_LINKS)}")
    if link == "sim":
        _refuse(
            where, port=(port, "link='uart', 'ftdi' or 'xdma'"), bitstream=(file, "link='uart'")
        )
        check_callable(where, simulated_arguments(design, ports))
        return SimulatedModule(design, ports, limit_cycles)
    check_one_each(where, design, _NAMES[link])
    if link == "uart":
        return _on_board(where, design, ports, on, limit_cycles)
    own = "link='uart': another device is loaded by you, with what its vendor's tools make"
    _refuse(where, bitstream=(file, own), board=(design.board or None, own))
    port = _port(where, port, _PORTS[link])
    if link == "xdma":
        return XdmaModule(design=design, ports=ports, port=port, limit_cycles=limit_cycles)
    design = replace(design, baud=0)
    return UartModule(design=design, ports=ports, port=port, limit_cycles=limit_cycles, link="ftdi")


def _on_board(
    where: str,
    design: HdlDesign,
    ports: NativePorts,
    on: tuple[str | None, str | os.PathLike[str] | None],
    limit_cycles: int | None,
) -> UartModule:
    port, file = on
    known = (design.board or file) and port is None
    if design.baud not in BAUDS:
        raise WiringError(f"{where}: a serial line has no baud={design.baud}")
    return UartModule(
        design=design,
        ports=ports,
        port="" if known else _port(where, port, _PORTS["uart"]),
        limit_cycles=limit_cycles,
        bitstream="" if file is None else str(Path(file).absolute()),
    )


def _refuse(where: str, **options: tuple[object, str]) -> None:
    """Options that another link has: each with its value and what it is of."""
    for option, (value, of) in options.items():
        if value is not None:
            raise WiringError(f"{where}: {option}={brief_repr(value)} is of {of}")


def _port(where: str, port: str | None, such_as: str) -> str:
    if not isinstance(port, str) or not port:
        raise WiringError(f"{where}: port={brief_repr(port)}; expected one such as {such_as!r}")
    return port
