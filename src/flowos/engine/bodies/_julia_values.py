"""Values on their way to Julia and back: it has all types of ours, and checks what it gives."""

from array import array
from collections.abc import Sequence
from typing import Any

from flowos.engine.bodies._language_values import Sent
from flowos.model import (
    NATIVE_DTYPES,
    ListOf,
    NativePorts,
    PortIncompatible,
    PortSpec,
    dtype_of,
    shape_of,
)

__flowos_frames__ = True
DTYPES = NATIVE_DTYPES | {"float16"}
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_OTHERS = ("float16", "float32", "float64", "complex64", "complex128")
_CODES = {name: code for code, name in enumerate(("bool", *_INTEGERS, *_OTHERS), 1)}
_TEXT = len(_CODES) + 1
_LENGTH = 8
Kind = tuple[int, ...]
"""Code, how many axes, their extents. A list of texts has one."""


def kind_of(port: PortSpec, extents: Sequence[int]) -> Kind:
    code = _CODES.get(dtype_of(port.type), _TEXT)
    return (code, len(extents), *extents)


def taken(port: PortSpec) -> Kind:
    """Before a call, when no extent is known."""
    return kind_of(port, [0] * (_is_list(port) or len(shape_of(port.type))))


def sent(port: PortSpec, value: Any) -> Sent:
    import numpy as np

    name = dtype_of(port.type)
    if name not in _CODES:
        texts = value if _is_list(port) else [value]
        content = _texts(f"input {port.name!r}", texts)
        return kind_of(port, [len(texts)] * _is_list(port)), len(content), content
    numbers = np.asarray(value, name)
    return kind_of(port, numbers.shape), numbers.nbytes, (numbers, name)


def wanted(ports: NativePorts, shapes: Sequence[Sequence[int]]) -> list[float]:
    """What Julia has to know of the outputs. Of a list of texts it says itself how long it is."""
    return [
        number
        for port, shape in zip(ports.outputs, shapes, strict=True)
        for number in kind_of(port, [0] if _is_list(port) else shape)
    ]


def received(
    ports: NativePorts,
    shapes: Sequence[Sequence[int]],
    counts: Sequence[float],
    values: memoryview,
) -> Any:
    """What a task gives. counts: how many texts each output has."""
    import numpy as np

    results: list[Any] = []
    at = 0
    for port, shape, count in zip(ports.outputs, shapes, counts, strict=True):
        name = dtype_of(port.type)
        if name not in _CODES:
            texts, at = _texts_at(values, at, int(count))
            results.append(texts if _is_list(port) else texts[0])
            continue
        seen = np.ndarray(shape, name, values, at, order="F")
        at += seen.nbytes
        results.append(seen.copy(order="F") if shape_of(port.type) else seen.item())
    return results[0] if len(results) == 1 else tuple(results)


def _is_list(port: PortSpec) -> bool:
    return isinstance(port.type, ListOf)


def _texts(where: str, texts: Sequence[str]) -> bytes:
    """The length of each, then all of them. PortIncompatible for what is no Unicode."""
    try:
        encoded = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise PortIncompatible(f"{where}: {error}") from None
    return b"".join((array("q", map(len, encoded)).tobytes(), *encoded))


def _texts_at(values: memoryview, at: int, count: int) -> tuple[list[str], int]:
    begin = at + _LENGTH * count
    texts = []
    for length in array("q", bytes(values[at:begin])):
        texts.append(bytes(values[begin : begin + length]).decode())
        begin += length
    return texts, begin
