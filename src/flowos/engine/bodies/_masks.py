"""Masked arrays: what lies below a mask is no number, and native code would take it for one."""

from collections.abc import Sequence
from typing import Any

from flowos.model import NativePorts, PortIncompatible

MASKS = "numpy.ma"
"""The module that is loaded where there is such an array."""


def masked_words(value: Any) -> str:
    """How many values of an array are masked, and what to do; "" if none is, as without a mask."""
    mask = getattr(value, "mask", None)
    if mask is None or not hasattr(value, "filled"):
        return ""
    count = mask.tobytes().count(1)
    if not count:
        return ""
    are = "is" if count == 1 else "are"
    fill = "nan" if value.dtype.kind in "fc" else "0"
    return f"{count} of {value.size} values {are} masked: fill it, as with x.filled({fill})"


def refuse_masked(ports: NativePorts, values: Sequence[Any]) -> None:
    """Raises PortIncompatible if a value of an input is masked."""
    for port, value in zip(ports.inputs, values, strict=False):
        if words := masked_words(value):
            raise PortIncompatible(f"input {port.name!r}: {words}")
