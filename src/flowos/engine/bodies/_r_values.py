"""Values on their way to R and back: R has doubles, 32-bit integers, logicals, complex, texts."""

from collections.abc import Sequence
from typing import Any

from flowos.engine.bodies._language_values import Sent, as_texts, texts_at
from flowos.model import ListOf, NativePorts, PortIncompatible, PortSpec, dtype_of, shape_of

__flowos_frames__ = True
_LOGICAL, _INTEGER, _DOUBLE, _COMPLEX, TEXT = range(1, 6)
_SENT_AS = {
    "bool": _LOGICAL,
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), _INTEGER),
    **dict.fromkeys(("uint32", "int64", "uint64", "float32", "float64"), _DOUBLE),
    **dict.fromkeys(("complex64", "complex128"), _COMPLEX),
}
_CROSS_AS = {_LOGICAL: "int32", _INTEGER: "int32", _DOUBLE: "float64", _COMPLEX: "complex128"}
_NA = -(2**31)
_MOST = 2**53
"""Up to here a double has each integer."""


def sent(port: PortSpec, value: Any) -> Sent:
    """PortIncompatible for a value that R would not have as it is."""
    import numpy as np

    name = dtype_of(port.type)
    if name not in _SENT_AS:
        texts = value if isinstance(port.type, ListOf) else [value]
        size, content = as_texts(f"input {port.name!r}", texts)
        return (TEXT, 2, len(texts), size), size, content
    numbers = np.asarray(value, name)
    _check_input(port.name, name, numbers)
    code = _SENT_AS[name]
    size = numbers.size * np.dtype(_CROSS_AS[code]).itemsize
    return (code, numbers.ndim, *numbers.shape), size, (numbers, _CROSS_AS[code])


def _check_input(name: str, dtype: str, numbers: Any) -> None:
    if dtype == "int32" and (numbers == _NA).any():
        raise PortIncompatible(f"input {name!r}: it has {_NA}, which is NA in R")
    if dtype in ("int64", "uint64") and numbers.size:
        for each in (numbers.min(), numbers.max()):
            if not -_MOST <= int(each) <= _MOST:
                raise PortIncompatible(
                    f"input {name!r}: it has {each}, and R's numbers are exact up to 2^53"
                )


def wanted(ports: NativePorts, shapes: Sequence[Sequence[int]]) -> list[float]:
    """What R has to know of the outputs."""
    words: list[float] = []
    for port, shape in zip(ports.outputs, shapes, strict=True):
        name = dtype_of(port.type)
        if name not in _SENT_AS:
            words += (TEXT, 1, -1) if isinstance(port.type, ListOf) else (TEXT, 0)
        else:
            code = _INTEGER if "int" in name else _SENT_AS[name]
            words += (code, len(shape), *shape)
    return words


def received(
    ports: NativePorts,
    shapes: Sequence[Sequence[int]],
    numbers: Sequence[float],
    values: memoryview,
) -> Any:
    """What a task gives. numbers: kind and count of each output. PortIncompatible if it has no such
    value."""
    results: list[Any] = []
    at = 0
    for i, (port, shape) in enumerate(zip(ports.outputs, shapes, strict=True)):
        code, count = int(numbers[2 * i]), int(numbers[2 * i + 1])
        if code == TEXT:
            texts, at = texts_at(values, at, count)
            results.append(texts if isinstance(port.type, ListOf) else texts[0])
            continue
        found, at = _numbers_at(port, shape, code, (values, at))
        results.append(found if shape_of(port.type) else found.item())
    return results[0] if len(results) == 1 else tuple(results)


def _numbers_at(
    port: PortSpec, shape: Sequence[int], code: int, place: tuple[memoryview, int]
) -> tuple[Any, int]:
    import numpy as np

    values, at = place
    seen = np.ndarray(shape, _CROSS_AS[code], values, at, order="F")
    dtype = np.dtype(dtype_of(port.type))
    bad = _not_held(seen, code, dtype)
    if bad is not None and bad.any():
        first = "NA" if code != _DOUBLE and seen[bad][0] == _NA else seen[bad][0]
        raise PortIncompatible(f"output {port.name!r}: it has {first}, which is no {dtype.name}")
    return seen.astype(dtype, order="F", copy=True), at + seen.nbytes


def _not_held(seen: Any, code: int, dtype: Any) -> Any:
    """Which elements the dtype does not have; None if it has all."""
    import numpy as np

    if code == _LOGICAL:
        return seen == _NA
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -_MOST), min(limits.max, _MOST)
        with np.errstate(invalid="ignore"):
            bad = (seen < low) | (seen > high)
            return bad | (seen != np.trunc(seen) if code == _DOUBLE else seen == _NA)
    if dtype.name in ("float32", "complex64"):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.isinf(seen.astype(dtype)) & ~np.isinf(seen)
    return None
