"""What a module looks like from outside, and whether it has the streams of a task."""

from collections.abc import Iterator, Mapping
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import HdlDesign, HdlStream, NoRetry, alternatives

__flowos_frames__ = True
Direction = Literal["input", "output", "inout"]
ModulePorts = Mapping[str, tuple[Direction, int]]
"""Each port's direction, and its width in bits."""

_CLOCKS = ("aclk", "clk")
_RESETS = {"aresetn": 0, "resetn": 0, "rst": 1}
"""Names of a reset, and its level."""
_SIGNALS = ("tdata", "tvalid", "tready", "tlast")


class FaceMismatch(NoRetry):
    """A module has not the ports that a task needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """The names of a module's clock and reset ("" if it has none), and the level of that."""

    clock: str
    reset: str
    reset_level: int


def face_of(ports: ModulePorts, design: HdlDesign) -> Face:
    """Raises FaceMismatch if a stream, the clock or a width is not as the design says."""
    inputs = {name for name, (direction, _) in ports.items() if direction == "input"}
    clock = next((name for name in _CLOCKS if name in inputs), "")
    reset = next((name for name in _RESETS if name in inputs), "")
    where = f"module {design.top}"
    if not clock:
        raise FaceMismatch(f"{where} has no clock: an input {alternatives(_CLOCKS)}")
    for name in (clock, *((reset,) if reset else ())):
        if ports[name][1] != 1:
            raise FaceMismatch(f"{where}: {name} has {ports[name][1]} bits")
    driven = {clock, reset}
    for stream, forth, back in _directed(design):
        for name, direction, bits in _wanted(stream, forth, back):
            _check(f"{where}, stream {stream.name!r}", ports, name, direction, bits, stream)
            driven.add(name)
    left = sorted(inputs - driven)
    if left:
        raise FaceMismatch(f"{where} has an input {left[0]}, which is of no stream of the task")
    return Face(clock=clock, reset=reset, reset_level=_RESETS.get(reset, 0))


def connections(design: HdlDesign, face: Face) -> str:
    """The ports of a module in its instance, at the wires `clk`, `reset`, `s_...` and `m_...` of a
    bridge."""
    (take,), (give,) = design.takes, design.gives
    wires = {
        **{f"{take.name}_{name}": f"s_{name}" for name in _SIGNALS},
        **{f"{give.name}_{name}": f"m_{name}" for name in _SIGNALS},
        face.clock: "clk",
    }
    if face.reset:
        wires[face.reset] = "reset" if face.reset_level else "!reset"
    return ", ".join(f".{port}({wire})" for port, wire in wires.items())


def _directed(design: HdlDesign) -> Iterator[tuple[HdlStream, Direction, Direction]]:
    """Each stream, the direction of its data, and that of its tready."""
    for stream in design.takes:
        yield stream, "input", "output"
    for stream in design.gives:
        yield stream, "output", "input"


def _wanted(
    stream: HdlStream, forth: Direction, back: Direction
) -> Iterator[tuple[str, Direction, int]]:
    yield f"{stream.name}_tdata", forth, stream.bits
    yield f"{stream.name}_tvalid", forth, 1
    yield f"{stream.name}_tready", back, 1
    yield f"{stream.name}_tlast", forth, 1


def _check(
    where: str, ports: ModulePorts, name: str, direction: Direction, bits: int, stream: HdlStream
) -> None:
    if name not in ports:
        raise FaceMismatch(f"{where}: there is no port {name}")
    found, width = ports[name]
    if found != direction:
        raise FaceMismatch(f"{where}: {name} is an {found}, and has to be an {direction}")
    if width != bits:
        lanes = " + ".join(stream.dtypes)
        raise FaceMismatch(f"{where}: {name} has {width} bits, and a beat of {lanes} has {bits}")
