"""Outputs of native bodies: allocated for a call, and read after it."""

from collections.abc import Sequence
from typing import Any

from flowos.model import NativePorts, dtype_of, shape_of


def empty_outputs(ports: NativePorts, values: Sequence[object]) -> list[Any]:
    """An array for each output, C-contiguous; one without axes for a scalar.

    Raises PortIncompatible if extents of the inputs disagree.
    """
    import numpy as np

    shapes = ports.shapes(ports.sizes(values))
    types = (dtype_of(port.type) for port in ports.outputs)
    return [np.empty(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]


def as_outputs(ports: NativePorts, arrays: Sequence[Any]) -> Any:
    """What a task gives: its one output, or a tuple of them; scalars as Python's."""
    found = [
        array if shape_of(port.type) else array.item()
        for port, array in zip(ports.outputs, arrays, strict=True)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def contiguous(values: Sequence[Any]) -> list[Any]:
    """The same; an array with strides is copied, which its body could not read."""
    import numpy as np

    return [
        np.ascontiguousarray(v) if isinstance(v, np.ndarray) and not v.flags.c_contiguous else v
        for v in values
    ]
