"""Sizes of a call of a kernel: of its work, of what it is passed, and of its outputs."""

from collections.abc import Callable, Sequence
from math import prod
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from flowos.engine.bodies._outputs import as_outputs
from flowos.model import (
    Array,
    Integer,
    NativePorts,
    PortIncompatible,
    WorkSize,
    dtype_of,
    shape_of,
)

__flowos_frames__ = True
_MAX_KNOWN = 1000
_MAX_WORK = 2**63 - 1
_SHAPE = attrgetter("shape")


class Found(NamedTuple):
    """Of a call. work: by axis; () if there is none. lengths: the extents that are passed.
    outputs: (shape, dtype, bytes) of each. full, empty: inputs that are arrays, with and without
    elements."""

    work: tuple[int, ...]
    lengths: list[int]
    outputs: list[tuple[tuple[int, ...], Any, int]]
    full: list[int]
    empty: list[int]


def names_of_sizes(ports: NativePorts) -> list[str]:
    """What sizes may be made of: named extents and inputs that are integers."""
    integers = (port.name for port in ports.inputs if isinstance(port.type, Integer))
    return list(dict.fromkeys([*(name for name, *_ in ports.extents), *integers]))


class CallSizes:
    """What is found of the sizes of a call, once for each: it looks in `known` by its `key`.

    refuse: given the work, raises what is wrong with it.
    """

    def __init__(
        self,
        ports: NativePorts,
        work: Sequence[WorkSize],
        refuse: Callable[[Sequence[int]], None],
    ) -> None:
        import numpy as np

        self._ports, self._work, self._refuse, self._zeros = ports, work, refuse, np.zeros
        self._dtypes = [np.dtype(dtype_of(port.type)) for port in ports.outputs]
        used = {*(size.extent for size in work), *(name for name, *_ in ports.extents)}
        inputs = list(enumerate(ports.inputs))
        self._arrays = [i for i, port in inputs if isinstance(port.type, Array)]
        self._sized = [i for i, p in inputs if isinstance(p.type, Integer) and p.name in used]
        self.key = self._key_with_integers if self._sized else _shapes(self._arrays)
        self.known: dict[Any, Found] = {}

    def __call__(self, key: object, values: Sequence[Any]) -> Found:
        """Raises PortIncompatible if extents disagree."""
        ports, inputs = self._ports, self._ports.inputs
        sizes = {inputs[i].name: int(values[i]) for i in self._sized} | ports.sizes(values)
        work = tuple(size.of(sizes) for size in self._work)
        if min(work) < 0:
            raise PortIncompatible(f"its work has a size below 0: {', '.join(map(str, work))}")
        if max(work) > _MAX_WORK:
            raise PortIncompatible(
                f"its work has a size above 2^63 - 1: {', '.join(map(str, work))}"
            )
        self._refuse(work)
        if len(self.known) >= _MAX_KNOWN:
            self.known.clear()
        sizes_of_arrays = {i: prod(values[i].shape) for i in self._arrays}
        found = self.known[key] = Found(
            work=work if 0 not in work else (),
            lengths=[sizes[name] for name in ports.lengths],
            outputs=[
                (shape, dtype, dtype.itemsize * prod(shape))
                for shape, dtype in zip(ports.shapes(sizes), self._dtypes, strict=True)
            ],
            full=[i for i, size in sizes_of_arrays.items() if size],
            empty=[i for i, size in sizes_of_arrays.items() if not size],
        )
        return found

    def _key_with_integers(self, values: Sequence[Any]) -> object:
        shapes = [values[i].shape for i in self._arrays]
        return tuple([*shapes, *[int(values[i]) for i in self._sized]])

    def nothing(self, found: Found) -> Any:
        """What a call without work gives."""
        zeros = [self._zeros(shape, dtype) for shape, dtype, _ in found.outputs]
        return as_outputs(self._ports, zeros)


def _shapes(places: Sequence[int]) -> Callable[[Sequence[Any]], object]:
    """Of the arrays at these places."""
    if not places:
        return lambda _: ()
    if len(places) == 1:
        return lambda values: values[places[0]].shape
    if len(places) == 2:
        i, j = places
        return lambda values: (values[i].shape, values[j].shape)
    pick = itemgetter(*places)
    return lambda values: tuple(map(_SHAPE, pick(values)))


def is_one_array(ports: NativePorts) -> bool:
    """Whether a task gives one array, and nothing has to be done to it."""
    return len(ports.outputs) == 1 and bool(shape_of(ports.outputs[0].type))
