"""Types of values that have parts, or are one of several kinds.

Each worker is sent this file, as it is sent `_ports`. The user's classes are known by their names,
so a type crosses where the class is another object, as those of a script are in a worker.
"""

from typing import Any

from flowos._dataclasses import dataclass
from flowos.model._ports import (
    Floating,
    PortType,
    Predicate,
    brief_repr,
    float32,
    float64,
    scalar_dtype,
)

Wrong = tuple[str, str]
"""Where in a value, as Python would reach it ("[3].name"), and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Composite(PortType):
    """A type whose complaint says which part of the value is wrong."""

    def check(self, value: object) -> str | None:
        found = self.wrong(value, "")
        if found is None:
            return None
        path, complaint = found
        return f"expected {self.name}; at {path}: {complaint}" if path else complaint

    def wrong(self, value: object, path: str) -> Wrong | None:
        """The first wrong part of `value`, which is at `path`; None if there is none."""
        raise NotImplementedError

    def _not_it(self, value: object, path: str) -> Wrong:
        return path, f"expected {self.name}, given {brief_repr(value)}"


def _wrong(type_: PortType, value: object, path: str) -> Wrong | None:
    if isinstance(type_, Composite):
        return type_.wrong(value, path)
    complaint = type_.check(value)
    return None if complaint is None else (path, complaint)


@dataclass(frozen=True, slots=True)
class ListOf(Composite):
    """A list, set or tuple of any length: what is of one of the `kinds`, all items of one type."""

    kinds: tuple[type, ...]
    item: PortType

    def wrong(self, value: object, path: str) -> Wrong | None:
        if not isinstance(value, self.kinds):
            return self._not_it(value, path)
        items: Any = value
        found = (_wrong(self.item, each, f"{path}[{i}]") for i, each in enumerate(items))
        return next(filter(None, found), None)

    def quick(self) -> Predicate:
        kinds, good = self.kinds, self.item.quick()
        return lambda v: isinstance(v, kinds) and all(map(good, v))  # type: ignore[call-overload]

    def accepts(self, given: PortType) -> bool:
        if isinstance(given, TupleOf):
            return tuple in self.kinds and all(map(self.item.accepts, given.items))
        return (
            isinstance(given, ListOf)
            and set(given.kinds) <= set(self.kinds)
            and self.item.accepts(given.item)
        )


@dataclass(frozen=True, slots=True)
class TupleOf(Composite):
    """A tuple with a type for each of its items."""

    items: tuple[PortType, ...]

    def wrong(self, value: object, path: str) -> Wrong | None:
        if not isinstance(value, tuple) or len(value) != len(self.items):
            return self._not_it(value, path)
        pairs = enumerate(zip(self.items, value, strict=True))
        found = (_wrong(type_, each, f"{path}[{i}]") for i, (type_, each) in pairs)
        return next(filter(None, found), None)

    def accepts(self, given: PortType) -> bool:
        return (
            isinstance(given, TupleOf)
            and len(given.items) == len(self.items)
            and all(mine.accepts(its) for mine, its in zip(self.items, given.items, strict=True))
        )


@dataclass(frozen=True, slots=True)
class DictOf(Composite):
    """A dict: all keys of one type, and all values of one."""

    key: PortType
    value: PortType

    def wrong(self, value: object, path: str) -> Wrong | None:
        if not isinstance(value, dict):
            return self._not_it(value, path)
        for key, each in value.items():
            found = _wrong(self.key, key, f"{path}.keys()")
            found = found or _wrong(self.value, each, f"{path}[{_shown(key)}]")
            if found:
                return found
        return None

    def quick(self) -> Predicate:
        key, good = self.key.quick(), self.value.quick()
        return lambda v: isinstance(v, dict) and all(map(key, v)) and all(map(good, v.values()))

    def accepts(self, given: PortType) -> bool:
        return (
            isinstance(given, DictOf)
            and self.key.accepts(given.key)
            and self.value.accepts(given.value)
        )


@dataclass(frozen=True, slots=True)
class OneOf(Composite):
    """A value of any of several types, as `int | None` is."""

    options: tuple[PortType, ...]

    def wrong(self, value: object, path: str) -> Wrong | None:
        all_wrong = []
        for option in self.options:
            found = _wrong(option, value, path)
            if found is None:
                return None
            all_wrong.append(found)
        deeper = [found for found in all_wrong if found[0] != path]
        return deeper[0] if len(deeper) == 1 else self._not_it(value, path)

    def quick(self) -> Predicate:
        goods = [option.quick() for option in self.options]
        return lambda v: any(good(v) for good in goods)

    def accepts(self, given: PortType) -> bool:
        kinds = given.options if isinstance(given, OneOf) else (given,)
        return all(any(mine.accepts(its) for mine in self.options) for its in kinds)


@dataclass(frozen=True, slots=True)
class Choice(PortType):
    """One of a few plain values, as `Literal["a", "b"]` has them; also None."""

    values: tuple[object, ...]

    def check(self, value: object) -> str | None:
        if any(type(each) is type(value) and each == value for each in self.values):
            return None
        return f"expected {self.name}, given {brief_repr(value)}"

    def accepts(self, given: PortType) -> bool:
        return isinstance(given, Choice) and all(self.check(v) is None for v in given.values)


NONE = Choice("None", (None,))


@dataclass(frozen=True, slots=True)
class ObjectOf(Composite):
    """An object of a class or of one that is derived from it, and its fields.

    of, bases: as "module:name"; `bases` are those of the class and itself. fields: those of a type
    that can be checked.
    """

    of: str
    bases: tuple[str, ...]
    fields: tuple[tuple[str, PortType], ...] = ()

    def wrong(self, value: object, path: str) -> Wrong | None:
        if self.of not in names_of(type(value)):
            return self._not_it(value, path)
        for name, type_ in self.fields:
            try:
                given = getattr(value, name)
            except AttributeError:
                return f"{path}.{name}", "the field is missing"
            found = _wrong(type_, given, f"{path}.{name}")
            if found:
                return found
        return None

    def accepts(self, given: PortType) -> bool:
        return isinstance(given, ObjectOf) and self.of in given.bases


def names_of(kind: type) -> tuple[str, ...]:
    """A class and those that it is derived from."""
    return tuple(f"{each.__module__}:{each.__qualname__}" for each in kind.__mro__)


@dataclass(frozen=True, slots=True)
class Complex(PortType):
    """A number whose two parts this type holds exactly, or a NumPy scalar of this dtype.

    >>> fo.complex64.check(1j) is None
    True
    >>> fo.complex64.check("1j")
    "expected complex64, given '1j' (str)"
    """

    part: Floating

    def check(self, value: object) -> str | None:
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        dtype = scalar_dtype(value)
        if dtype is None:
            fits = all(self.part.check(part) is None for part in parts)
        else:
            fits = dtype == self.name
        return None if fits else f"expected {self.name}, given {brief_repr(value)}"


complex64, complex128 = Complex("complex64", float32), Complex("complex128", float64)


def _shown(key: object) -> str:
    """A key of a dict, short."""
    return brief_repr(key).rpartition(" (")[0]
