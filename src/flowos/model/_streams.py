"""Tasks whose body is a module of Verilog: its AXI streams, and what one beat of each carries."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from flowos._dataclasses import dataclass
from flowos.model._bodies import PortSpec
from flowos.model._errors import WiringError
from flowos.model._native_ports import NativePorts, dtype_of, shape_of
from flowos.model._ports import Array, brief_repr

STREAM_DTYPES = frozenset(
    {"float32", "float64"}
    | {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
)
"""Of elements that a beat can carry."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
MIN_CYCLES, CYCLES_A_BEAT = 100_000, 100
"""A module may take so many for what it is given, and more for each beat of its streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HdlStream:
    """An AXI stream. lanes: numbers of the ports whose elements a beat carries side by side, the
    first in the lowest bits; dtypes: of those; shape: of those that are arrays, () if none is."""

    name: str
    lanes: tuple[int, ...]
    dtypes: tuple[str, ...]
    shape: tuple[int | str, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """In bytes, of the elements of a beat."""
        return tuple(int(re.sub(r"\D", "", dtype)) // 8 for dtype in self.dtypes)

    @property
    def bits(self) -> int:
        """Of its tdata."""
        return 8 * sum(self.widths)

    def beats(self, sizes: Mapping[str, int]) -> int:
        """How many it has, where named extents have these sizes."""
        return math.prod(sizes[n] if isinstance(n, str) else n for n in self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class HdlDesign:
    """A module and the streams of a task. files: (path, or "" of code, and the text) of each.

    headers: digests of the files that these include, for results that are kept. board: that a
    bitstream is made for, "" for none; baud: of its serial line.
    """

    files: tuple[tuple[str, str], ...]
    top: str
    takes: tuple[HdlStream, ...]
    gives: tuple[HdlStream, ...]
    headers: tuple[tuple[str, str], ...] = ()
    board: str = ""
    baud: int = 0


def streams_of(
    where: str, ports: NativePorts, into: object, out: object
) -> tuple[tuple[HdlStream, ...], tuple[HdlStream, ...]]:
    """Those that a module takes, and those that it gives. Raises WiringError for what cannot be."""
    takes = tuple(_streams(f"{where}, into", ports.inputs, into))
    gives = tuple(_streams(f"{where}, out", ports.outputs, out))
    both = {stream.name for stream in takes} & {stream.name for stream in gives}
    if both:
        raise WiringError(f"{where}: stream {min(both)!r} is one of into and one of out")
    extents = {name for name, _, _ in ports.extents}
    for port in _left_out(takes, ports.inputs):
        if isinstance(port.type, Array) or port.name not in extents:
            raise WiringError(f"{where}: input {port.name!r} is in no stream of into=")
    for port in _left_out(gives, ports.outputs):
        raise WiringError(f"{where}: output {port.name!r} is in no stream of out=")
    for stream in gives:
        kinds = {isinstance(ports.outputs[number].type, Array) for number in stream.lanes}
        if len(kinds) > 1:
            raise WiringError(f"{where}, out: stream {stream.name!r} has a scalar in each beat")
    return takes, gives


def _left_out(streams: Sequence[HdlStream], ports: Sequence[PortSpec]) -> list[PortSpec]:
    carried = {number for stream in streams for number in stream.lanes}
    return [port for number, port in enumerate(ports) if number not in carried]


def _streams(where: str, ports: Sequence[PortSpec], given: object) -> Iterator[HdlStream]:
    if not isinstance(given, Mapping) or not given:
        raise WiringError(
            f"{where}={brief_repr(given)}; expected streams and the ports of each, such as "
            '{"s": ("a", "b")}'
        )
    numbers = {port.name: number for number, port in enumerate(ports)}
    seen: set[str] = set()
    for name, carried in given.items():
        names = (carried,) if isinstance(carried, str) else carried
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise WiringError(f"{where}: {brief_repr(name)} is no name of a stream, such as 's'")
        if not isinstance(names, Sequence) or not names:
            raise WiringError(f"{where}: stream {name!r} carries no ports: {brief_repr(names)}")
        for port in names:
            if port not in numbers:
                known = ", ".join(numbers)
                raise WiringError(
                    f"{where}: stream {name!r} carries {port!r}; there are {known or 'no ports'}"
                )
            if port in seen:
                raise WiringError(f"{where}: {port!r} is carried twice")
            seen.add(port)
        yield _stream(where, name, [(numbers[port], ports[numbers[port]]) for port in names])


def _stream(where: str, name: str, lanes: Sequence[tuple[int, PortSpec]]) -> HdlStream:
    arrays = [port for _, port in lanes if isinstance(port.type, Array)]
    shape = shape_of(arrays[0].type) if arrays else ()
    for port in arrays:
        if shape_of(port.type) != shape:
            raise WiringError(
                f"{where}: stream {name!r} carries {arrays[0]} and {port}, of other shapes: one "
                "beat has an element of each"
            )
    return HdlStream(
        name=name,
        lanes=tuple(number for number, _ in lanes),
        dtypes=tuple(dtype_of(port.type) for _, port in lanes),
        shape=tuple(n for n in shape if n is not None),
    )
