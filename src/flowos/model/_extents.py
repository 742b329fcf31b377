"""Named extents of a task's arrays: bound to sizes, which have to agree.

Plain data and the standard library only: each worker is sent this file.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

AxisRef = tuple[str, int, int | None, int]
"""A port's name and number, the axis of its array (None: the value itself is the extent), and how
many axes that has."""
Extents = tuple[tuple[str, tuple[AxisRef, ...], tuple[AxisRef, ...]], ...]
"""Each name in order of first appearance, with its places among the inputs and the outputs."""

OUR_FRAMES = "__flowos_frames__"
"""A module with this name in it is no person's code: an error is not said to be there."""
__flowos_frames__ = True


class PortIncompatible(Exception):  # noqa: N818 - reads as what is so
    """What a task was given or gave is not what its ports promise; the text names the port."""


def named_extents(inputs: Sequence[Any], outputs: Sequence[Any]) -> Extents:
    """Of the ports of a task; an integer input with the name of an extent is that extent."""
    shapes = [*_named_axes(inputs), *_named_axes(outputs)]
    if not shapes:
        return ()
    names = dict.fromkeys(name for name, _ in shapes)
    return tuple(
        (
            name,
            tuple([p for n, p in _named_axes(inputs) if n == name] + _scalars(inputs, name)),
            tuple(p for n, p in _named_axes(outputs) if n == name),
        )
        for name in names
    )


def _named_axes(ports: Sequence[Any]) -> Iterator[tuple[str, AxisRef]]:
    for number, port in enumerate(ports):
        shape = getattr(port.type, "shape", None) or ()
        for axis, extent in enumerate(shape):
            if isinstance(extent, str):
                yield extent, (port.name, number, axis, len(shape))


def _scalars(inputs: Sequence[Any], name: str) -> list[AxisRef]:
    return [
        (name, i, None, 0)
        for i, port in enumerate(inputs)
        if port.name == name and hasattr(port.type, "low")
    ]


def bind_extents(extents: Extents, values: Sequence[Any]) -> dict[str, int]:
    """The size of each name that inputs say.

    Raises PortIncompatible if two disagree, or one is below 0.
    """
    sizes: dict[str, int] = {}
    for name, inputs, _ in extents:
        if inputs:
            sizes[name] = size = _size(values, inputs[0])
            if size < 0:
                raise PortIncompatible(f"input {inputs[0][0]!r}: extent {name!r} is {size}")
            for place in inputs[1:]:
                if (other := _size(values, place)) != size:
                    raise PortIncompatible(_disagree(name, "input", place, other, inputs[0], size))
    return sizes


def _size(values: Sequence[Any], place: AxisRef) -> int:
    _, number, axis, _ = place
    return int(values[number]) if axis is None else values[number].shape[axis]


def _disagree(
    name: str, kind: str, place: AxisRef, size: int, first: AxisRef, other: int, of: str = "input"
) -> str:
    return f"{kind} {place[0]!r}: extent {name!r} is {size}, and {other} in {of} {first[0]!r}"


def check_results(extents: Extents, sizes: dict[str, int], result: Any) -> None:
    """PortIncompatible if an output has another size than an input, or another output.

    What is no array of the right shape is left to its port.
    """
    values = result if isinstance(result, (tuple, list)) else (result,)
    for name, inputs, outputs in extents:
        known = (inputs[0], sizes[name], "input") if inputs else None
        for place in outputs:
            size = _size_if_there(values, place)
            if size is None:
                continue
            if known is None:
                known = place, size, "output"
            if size != known[1]:
                raise PortIncompatible(_disagree(name, "output", place, size, *known))


def _size_if_there(values: Sequence[Any], place: AxisRef) -> int | None:
    _, number, axis, axes = place
    shape = getattr(values[number], "shape", ()) if number < len(values) else ()
    return shape[axis] if axis is not None and axes == len(shape) else None


def with_extents(fun: Callable[..., Any], extents: Extents) -> Callable[..., Any]:
    """The function, which raises PortIncompatible where extents disagree."""
    if not extents:
        return fun
    among_inputs, to_outputs = _pairs(extents)

    def call(*values: Any) -> Any:
        for i, axis, j, other in among_inputs:
            if values[i].shape[axis] != values[j].shape[other]:
                bind_extents(extents, values)
        result = fun(*values)
        try:
            for axis, j, other in to_outputs:
                if result.shape[axis] != values[j].shape[other]:
                    check_results(extents, bind_extents(extents, values), result)
        except (AttributeError, IndexError):  # of several outputs, or one that its port refuses
            check_results(extents, bind_extents(extents, values), result)
        return result

    def call_slowly(*values: Any) -> Any:
        sizes = bind_extents(extents, values)
        result = fun(*values)
        check_results(extents, sizes, result)
        return result

    return call if _are_simple(extents) else call_slowly


def _are_simple(extents: Extents) -> bool:
    """Whether arrays alone say them, and each but for those of the first output is an input's."""
    places = [place for _, inputs, outputs in extents for place in (*inputs, *outputs)]
    known = all(inputs and all(place[1] == 0 for place in o) for _, inputs, o in extents)
    return known and all(place[2] is not None for place in places)


def _pairs(extents: Extents) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What has to be of one size: (input, axis, first input, axis), (axis, first input, axis)."""
    among_inputs: list[tuple[Any, ...]] = []
    to_outputs: list[tuple[Any, ...]] = []
    for _, inputs, outputs in extents:
        first = (inputs or outputs)[0][1:3]
        among_inputs += [(number, axis, *first) for _, number, axis, _ in inputs[1:]]
        to_outputs += [(axis, *first) for _, _, axis, _ in outputs]
    return among_inputs, to_outputs


def known_extents(extents: Extents, arguments: Sequence[Any]) -> dict[str, int]:
    """Sizes that are known before a run. arguments: of each input an array, an integer, or a port
    type of arrays. PortIncompatible if two disagree."""
    sizes: dict[str, int] = {}
    for name, inputs, _ in extents:
        known = [(p, s) for p in inputs if (s := _known(arguments[p[1]], p[2])) is not None]
        for place, size in known:
            if size != known[0][1]:
                raise PortIncompatible(_disagree(name, "input", place, size, *known[0]))
            sizes[name] = size
    return sizes


def _known(argument: Any, axis: int | None) -> int | None:
    if axis is None:
        return None if hasattr(argument, "low") or argument is None else int(argument)
    shape = getattr(argument, "shape", None)
    extent = shape[axis] if shape is not None and axis < len(shape) else None
    return extent if isinstance(extent, int) else None
