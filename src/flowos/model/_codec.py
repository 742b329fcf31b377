"""Converts dataclasses of the model to plain JSON values and back, using their type hints.

A dataclass becomes an object, a tuple a list, a path its text. A number that JSON lacks becomes
null in output for people and programs (`to_json`), and "nan", "inf" or "-inf" where it must be
restored exactly, as in the store (`to_plain`). Reading accepts both, null as nan, and the name that
a field had in earlier versions (its metadata "formerly"); it checks every value and reports where
the first invalid one is.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from flowos._dataclasses import Parameter, parameters

T = TypeVar("T")
Reader = Callable[[Any, str], Any]
"""Converts a JSON value at a path to the hinted type; raises ValueError for any other value."""

_BEYOND_JSON = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_plain(value: object) -> Any:
    """A dataclass, or tuples of them, as values of strict JSON, without loss."""
    return _plain(value, str)


def to_json(value: object) -> Any:
    """The same for external readers: null is a number that is unknown or not finite."""
    return _plain(value, lambda _: None)


def _plain(value: object, beyond: Callable[[float], str | None]) -> Any:
    """beyond: replacement for a number that JSON lacks."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else beyond(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(each, beyond) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each, beyond) for name, each in value.items()}
    found = parameters(type(value))
    if found is None:
        raise TypeError(f"{type(value).__name__} is no part of a noun: {value!r}")
    return {each.name: _plain(getattr(value, each.name), beyond) for each in found}


def from_plain(noun: type[T], raw: object, at: str = "") -> T:
    """Read a dataclass back. Raises ValueError with a path such as `run.facts.cpus[3].core`."""
    hint: Any = noun
    return cast(T, _reader(hint)(raw, at or noun.__name__.lower()))


@cache
def _reader(hint: Any) -> Reader:
    origin = get_origin(hint)
    if hint in _READERS:
        return _READERS[hint]
    if origin is tuple:
        return _tuple_reader(get_args(hint))
    if origin is Literal:
        return _literal_reader(get_args(hint))
    if origin in (Union, UnionType):
        return _union_reader(get_args(hint))
    if isinstance(hint, type) and (found := parameters(hint)) is not None:
        return _noun_reader(hint, found)
    raise TypeError(f"{hint} is no part of a noun")


def _wrong(expected: str, raw: object, at: str) -> ValueError:
    return ValueError(f"{at}: {expected} expected, got {raw!r:.80}")


def _plain_reader(kind: type) -> Reader:
    def read(raw: Any, at: str) -> Any:
        if type(raw) is not kind:
            raise _wrong(kind.__name__, raw, at)
        return raw

    return read


def _read_float(raw: Any, at: str) -> float:
    if raw is None:
        return math.nan
    if isinstance(raw, str) and raw in _BEYOND_JSON:
        return _BEYOND_JSON[raw]
    if type(raw) not in (int, float):
        raise _wrong("number", raw, at)
    try:
        return float(raw)
    except OverflowError:
        raise _wrong("smaller number", raw, at) from None


def _read_path(raw: Any, at: str) -> PurePath:
    if not isinstance(raw, str):
        raise _wrong("path", raw, at)
    return PurePath(raw)


def _tuple_reader(items: tuple[Any, ...]) -> Reader:
    if items[-1] is Ellipsis:
        each = _reader(items[0])

        def read(raw: Any, at: str) -> tuple[Any, ...]:
            if not isinstance(raw, list):
                raise _wrong("list", raw, at)
            return tuple(each(item, f"{at}[{i}]") for i, item in enumerate(raw))

        return read
    readers = [_reader(item) for item in items]

    def read_fixed(raw: Any, at: str) -> tuple[Any, ...]:
        if not isinstance(raw, list) or len(raw) != len(readers):
            raise _wrong(f"list of {len(readers)}", raw, at)
        pairs = zip(readers, raw, strict=True)
        return tuple(one(item, f"{at}[{i}]") for i, (one, item) in enumerate(pairs))

    return read_fixed


def _literal_reader(allowed: tuple[Any, ...]) -> Reader:
    def read(raw: Any, at: str) -> Any:
        if raw not in allowed:
            raise _wrong(f"one of {allowed}", raw, at)
        return raw

    return read


def _union_reader(options: tuple[Any, ...]) -> Reader:
    if options == (int, str):  # of which JSON keeps each as it is
        number, text = map(_reader, options)
        return lambda raw, at: (text if isinstance(raw, str) else number)(raw, at)
    inner = [option for option in options if option is not NoneType]
    if len(inner) != 1 or len(options) != 2:
        raise TypeError(f"a union of {options} is no part of a noun")
    reader = _reader(*inner)
    return lambda raw, at: None if raw is None else reader(raw, at)


def _noun_reader(noun: type, found: tuple[Parameter, ...]) -> Reader:
    hints = get_type_hints(noun)
    readers = {each.name: _reader(hints[each.name]) for each in found}
    needed = {each.name for each in found if each.required}
    renamed = {
        each.metadata["formerly"]: each.name for each in found if "formerly" in each.metadata
    }

    def read(raw: Any, at: str) -> Any:
        if not isinstance(raw, dict):
            raise _wrong(noun.__name__, raw, at)
        if renamed:
            raw = {n if (new := renamed.get(n, n)) in raw else new: raw[n] for n in raw}
        if unknown := sorted(set(raw) - set(readers)):
            raise ValueError(f"{at}: {noun.__name__} has no field {unknown[0]!r:.80}")
        if absent := sorted(needed - set(raw)):
            raise ValueError(f"{at}: {noun.__name__} lacks its field {absent[0]!r}")
        return noun(**{name: readers[name](item, f"{at}.{name}") for name, item in raw.items()})

    return read


_READERS: dict[Any, Reader] = {
    str: _plain_reader(str),
    int: _plain_reader(int),
    bool: _plain_reader(bool),
    float: _read_float,
    PurePath: _read_path,
}
