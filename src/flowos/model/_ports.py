"""Types of values between tasks. Workers without FlowOS are sent this file and `_dataclasses`."""

import math
import reprlib
import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from flowos._dataclasses import dataclass, replace

Predicate = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class PortType:
    """A type of port. `check` returns an error message or None; the engine checks files."""

    name: str

    def check(self, value: object) -> str | None:
        """Error message for `value`, or None if it is valid."""
        raise NotImplementedError

    def quick(self) -> Predicate:
        """The same answer as `check`, as a predicate that is fast for common values."""
        return lambda value: self.check(value) is None

    def accepts(self, given: "PortType") -> bool:
        """Whether every value of the type `given` is valid for this type."""
        return self == given

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Anything(PortType):
    """Any Python object.

    >>> fo.any_.check(object()) is None
    True
    """

    def check(self, value: object) -> str | None:  # noqa: ARG002
        return None

    def quick(self) -> Predicate:
        return lambda _: True

    def accepts(self, given: PortType) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class Integer(PortType):
    """An int within `low..high`, or a NumPy scalar of this dtype.

    >>> fo.uint8.check(255) is None
    True
    >>> fo.uint8.check(256)
    'expected uint8 (0..255), given 256 (int)'
    """

    low: int
    high: int

    def check(self, value: object) -> str | None:
        dtype = scalar_dtype(value)
        if dtype is not None:
            return None if dtype == self.name else _not_a(self.name, value)
        if not isinstance(value, int) or isinstance(value, bool):
            return _not_a(self.name, value)
        if self.low <= value <= self.high:
            return None
        return f"expected {self.name} ({self.low}..{self.high}), given {brief_repr(value)}"

    def quick(self) -> Predicate:
        low, high, check = self.low, self.high, self.check
        return lambda v: (type(v) is int and low <= v <= high) or check(v) is None


@dataclass(frozen=True, slots=True)
class Floating(PortType):
    """A float or int that this type represents exactly, or a NumPy scalar of this dtype.

    >>> fo.float32.check(0.5) is None
    True
    >>> fo.float32.check(0.1)
    'expected float32, which cannot hold 0.1 (float) exactly'
    """

    code: str

    def check(self, value: object) -> str | None:
        dtype = scalar_dtype(value)
        if dtype is not None:
            return None if dtype == self.name else _not_a(self.name, value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return _not_a(self.name, value)
        if self._holds(value):
            return None
        return f"expected {self.name}, which cannot hold {brief_repr(value)} exactly"

    def _holds(self, value: float) -> bool:
        try:
            return (
                math.isinf(value)
                or math.isnan(value)
                or bool(struct.unpack(self.code, struct.pack(self.code, value))[0] == value)
            )
        except OverflowError:
            return False

    def quick(self) -> Predicate:
        check = self.check
        if self.code == "d":
            return lambda v: type(v) is float or check(v) is None
        return lambda v: check(v) is None


@dataclass(frozen=True, slots=True)
class Boolean(PortType):
    """A bool of Python or NumPy.

    >>> fo.bool_.check(1)
    'expected bool_, given 1 (int)'
    """

    def check(self, value: object) -> str | None:
        good = isinstance(value, bool) or scalar_dtype(value) == "bool"
        return None if good else _not_a(self.name, value)


@dataclass(frozen=True, slots=True)
class Text(PortType):
    """A str or bytes object, according to `kind`.

    >>> fo.str_.check(b"bytes")
    "expected str_, given b'bytes' (bytes)"
    """

    kind: type

    def check(self, value: object) -> str | None:
        return None if isinstance(value, self.kind) else _not_a(self.name, value)


@dataclass(frozen=True, slots=True)
class FilePath(PortType):
    """The path of a file; the engine checks whether it exists.

    >>> fo.command(["wc", "-l", fo.In("text")], inputs={"text": fo.File})
    <task wc(text: File) -> stdout: str_>
    """

    def check(self, value: object) -> str | None:
        if not isinstance(value, str) and not hasattr(type(value), "__fspath__"):
            return _not_a("File (a path)", value)
        path = value if isinstance(value, str) else value.__fspath__()  # type: ignore[attr-defined]
        if not isinstance(path, str) or not path or "\0" in path:
            return _not_a("File (a path)", value)
        return None


Shape = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Array(PortType):
    """A NumPy array in native byte order. None matches any dtype, any shape, or any extent.

    An extent with a name matches any, too: that the ports of a task agree on it is checked where
    the task runs, see `_extents`.
    """

    dtype: str | None
    shape: Shape | None

    def check(self, value: object) -> str | None:
        good = _is_array(value) and self._matches(value)
        return None if good else _not_a(self.name, value)

    def quick(self) -> Predicate:
        check, dtype, shape = self.check, self.dtype, self.shape
        numbers = [type(extent) is int for extent in shape or ()]
        whole, axes = all(numbers), None if shape is None or any(numbers) else len(shape)
        ndarray: Any = None

        def good(value: Any) -> bool:
            nonlocal dtype, ndarray
            if ndarray is None and _is_array(value):
                ndarray = sys.modules["numpy"].ndarray
                dtype = dtype and _dtype_called(dtype)
            if type(value) is not ndarray or (dtype is not None and value.dtype != dtype):
                return check(value) is None
            if axes is not None:
                return bool(value.ndim == axes)
            if shape is None:
                return True
            return bool(value.shape == shape) if whole else _fits(shape, value.shape)

        return good

    def _matches(self, value: Any) -> bool:
        if self.dtype is not None and value.dtype != _dtype_called(self.dtype):
            return False
        return self.shape is None or _fits(self.shape, value.shape)

    def with_sizes(self, sizes: Mapping[str, int]) -> "Array":
        """The type with the sizes of named extents that are known."""
        if not any(extent in sizes for extent in self.shape or ()):
            return self
        shape = tuple(sizes.get(e, e) if isinstance(e, str) else e for e in self.shape or ())
        return replace(self, name=_array_name(self.dtype, shape), shape=shape)

    def accepts(self, given: PortType) -> bool:
        if not isinstance(given, Array) or self.dtype not in (None, given.dtype):
            return False
        if self.shape is None:
            return True
        return given.shape is not None and _fits(self.shape, given.shape)


@dataclass(frozen=True, slots=True)
class DeviceArray(Array):
    """An array of NumPy, or one on a GPU that says so by `__cuda_array_interface__`."""

    def check(self, value: object) -> str | None:
        if not hasattr(value, "__cuda_array_interface__"):
            return Array.check(self, value)
        return None if self._matches(value) else _not_a(self.name, value)


def _fits(shape: Shape, given: Shape) -> bool:
    if len(shape) != len(given):
        return False
    for wanted, extent in zip(shape, given):  # noqa: B905 - each array is asked
        if wanted != extent and type(wanted) is int:
            return False
    return True


@cache
def _dtype_called(name: str) -> Any:
    """To be asked for its name, a dtype takes sixty times as long as to be compared."""
    return sys.modules["numpy"].dtype(name)


def _integer(bits: int) -> Integer:
    return Integer(f"int{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _unsigned(bits: int) -> Integer:
    return Integer(f"uint{bits}", 0, 2**bits - 1)


int8, int16, int32, int64 = (_integer(bits) for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_unsigned(bits) for bits in (8, 16, 32, 64))
float16, float32, float64 = (
    Floating("float16", "e"),
    Floating("float32", "f"),
    Floating("float64", "d"),
)
bool_ = Boolean("bool_")
str_ = Text("str_", str)
bytes_ = Text("bytes_", bytes)
File = FilePath("File")
any_ = Anything("any_")

_DTYPES = frozenset(
    f"{kind}{bits}"
    for kind, sizes in (
        ("int", (8, 16, 32, 64)),
        ("uint", (8, 16, 32, 64)),
        ("float", (16, 32, 64)),
        ("complex", (64, 128)),
    )
    for bits in sizes
) | {"bool"}
_PYTHON_DTYPES = {int: "int64", float: "float64", bool: "bool", complex: "complex128"}


def array(dtype: object = None, shape: int | str | Shape | None = None) -> Array:
    """An array port. array(float64, (None, 3)): any number of rows of 3; None matches any.

    dtype: a port type (float64), a name ("complex128"), or NumPy's type or dtype.
    shape: a name stands for an extent that is the same in all ports of one task, such as ("n", 3).
    An integer input of that name is that extent. In a list or another port it says nothing.

    In a signature, type checkers take Annotated[NDArray[np.float64], fo.array(float64, (None, 3))].

    >>> fo.array(fo.float64, (None, 3)).check(np.zeros((5, 3)))
    >>> fo.array("float32", ("n", "n")).check(np.zeros((2, 2)))
    "expected array(float32, ('n', 'n')), given an array of float64, shape (2, 2)"
    """
    name = None if dtype is None else _dtype_name(dtype)
    extents = (shape,) if isinstance(shape, (int, str, float)) else shape
    if extents is not None:
        extents = tuple(extents)
        if not all(map(_is_extent, extents)):
            raise TypeError(
                f"array shape {shape!r}: expected non-negative ints, names, None for any"
            )
    return Array(_array_name(name, extents), name, extents)


def _array_name(dtype: str | None, shape: Shape | None) -> str:
    words = "any" if shape is None else str(shape).replace("None", "any")
    return f"array({dtype or 'any'}, {words})"


def _is_extent(given: object) -> bool:
    if isinstance(given, str):
        return given.isidentifier()
    return given is None or (type(given) is int and given >= 0)


def _dtype_name(dtype: object) -> str:
    if isinstance(dtype, type) and dtype in _PYTHON_DTYPES:
        return _PYTHON_DTYPES[dtype]
    for name in (dtype, getattr(dtype, "name", None), getattr(dtype, "__name__", None)):
        if isinstance(name, str) and name.rstrip("_") in _DTYPES:
            return name.rstrip("_")
    raise TypeError(f"array dtype {dtype!r}: expected one of {', '.join(sorted(_DTYPES))} or None")


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def scalar_dtype(value: object) -> str | None:
    """Name of the dtype of a NumPy scalar; None for everything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return None
    return str(value.dtype.name)


def _not_a(name: str, value: object) -> str:
    return f"expected {name}, given {brief_repr(value)}"


def brief_repr(value: object, max_chars: int = 60) -> str:
    """Brief description of a value with its type; arrays by dtype and shape, long values cut."""
    kind = type(value).__name__
    if _is_array(value):
        dtype, shape = value.dtype, value.shape  # type: ignore[attr-defined]
        swapped = "" if dtype.isnative else " in foreign byte order"
        return f"an array of {dtype.name}{swapped}, shape {shape}"
    brief = _Brief()
    brief.maxstring = brief.maxother = brief.maxlong = max_chars
    try:
        return f"{' '.join(brief.repr(value).split())} ({kind})"
    except Exception:  # reprlib selects by class name, and a class may be named like a built-in
        if type(value) is int:  # longer than sys.get_int_max_str_digits()
            return f"a number of {int(value.bit_length() * math.log10(2)) + 1:,} digits (int)"
        return f"a value without a text ({kind})"


class _Brief(reprlib.Repr):
    """Cuts early, so that a huge value costs little."""

    def repr_bytes(self, value: bytes, level: int) -> str:  # noqa: ARG002
        return repr(value) if len(value) <= self.maxother else f"{value[: self.maxother - 3]!r}..."
