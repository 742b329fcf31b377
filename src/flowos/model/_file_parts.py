"""Files in a value: itself, or parts of it at any depth, as its type says where they are."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from flowos.model._composite_ports import DictOf, ListOf, ObjectOf, OneOf, TupleOf
from flowos.model._ports import File, PortType

FileReplacement = Callable[[Any, str], object]
"""What is to stand for a file, which is at a path within the value ("[3].name"; itself: "")."""
_Part = tuple[Any, PortType, str]
"""A part of a value, its type, and where it is."""


def has_files(type_: PortType) -> bool:
    """Whether values of this type may have files."""
    return type_ == File or any(map(has_files, _types_in(type_)))


def with_files(type_: PortType, value: Any, place: FileReplacement, path: str = "") -> Any:
    """The value with `place(file, path)` for each of its files; itself where all are the same.

    What is not of this type is left as it is. The value itself is never changed.
    """
    if not has_files(type_) or type_.check(value) is not None:
        return value
    if type_ == File:
        return place(value, path)
    if isinstance(type_, OneOf):  # a text that may be no file is left
        fits = [each for each in type_.options if each.check(value) is None]
        return with_files(min(fits, key=has_files), value, place, path)
    parts = list(_parts_of(type_, value, path))
    placed = [with_files(kind, part, place, at) for part, kind, at in parts]
    if all(new is part for new, (part, _, _) in zip(placed, parts, strict=True)):
        return value
    return _rebuilt(type_, value, placed)


def _types_in(type_: PortType) -> tuple[PortType, ...]:
    match type_:
        case ListOf():
            return (type_.item,)
        case TupleOf():
            return type_.items
        case DictOf():
            return (type_.key, type_.value)
        case OneOf():
            return type_.options
        case ObjectOf():
            return tuple(kind for _, kind in type_.fields)
    return ()


def _parts_of(type_: PortType, value: Any, path: str) -> Iterator[_Part]:
    """In the order in which `_rebuilt` takes them: of a dict the keys, then the values."""
    match type_:
        case ListOf():
            yield from ((each, type_.item, f"{path}[{i}]") for i, each in enumerate(value))
        case TupleOf():
            pairs = zip(value, type_.items, strict=True)
            yield from ((each, kind, f"{path}[{i}]") for i, (each, kind) in enumerate(pairs))
        case DictOf():
            yield from ((key, type_.key, f"{path}.keys()") for key in value)
            yield from ((each, type_.value, f"{path}[{key!r}]") for key, each in value.items())
        case _:
            assert isinstance(type_, ObjectOf)
            yield from ((getattr(value, n), kind, f"{path}.{n}") for n, kind in type_.fields)


def _rebuilt(type_: PortType, value: Any, parts: list[Any]) -> Any:
    """Like the value, of these parts."""
    if isinstance(type_, ObjectOf):
        names = [name for name, _ in type_.fields]
        if isinstance(value, tuple):
            return value._replace(**dict(zip(names, parts, strict=True)))  # type: ignore[attr-defined]
        made = copy.copy(value)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(made, name, part)  # frozen ones, too
        return made
    if isinstance(type_, DictOf):
        made = copy.copy(value)
        made.clear()
        made.update(zip(parts[: len(value)], parts[len(value) :], strict=True))
        return made
    return getattr(value, "_make", type(value))(parts)
