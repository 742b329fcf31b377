"""Port types from type hints: ours, or the Python or NumPy types that map to them."""

import types
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from enum import Enum
from pathlib import PurePath
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from flowos.model import _ports
from flowos.model._composite_ports import (
    NONE,
    Choice,
    DictOf,
    ListOf,
    ObjectOf,
    OneOf,
    TupleOf,
    complex64,
    complex128,
    names_of,
)
from flowos.model._errors import WiringError
from flowos.model._ports import (
    File,
    PortType,
    any_,
    array,
    bool_,
    brief_repr,
    bytes_,
    float64,
    int64,
    str_,
)

_PYTHON_TYPES: dict[object, PortType] = {
    int: int64,
    float: float64,
    complex: complex128,
    bool: bool_,
    str: str_,
    bytes: bytes_,
    object: any_,
    Any: any_,
    None: NONE,
    type(None): NONE,
}
_LISTS: dict[object, tuple[type, ...]] = {
    list: (list,),
    set: (set,),
    frozenset: (frozenset,),
    Sequence: (list, tuple),
    MutableSequence: (list,),
}
_DICTS = (dict, Mapping, MutableMapping)


class _Unknown(Exception):  # noqa: N818 - reads as what happened
    """(the part of a hint that stands for no port type,)."""


def port_type(where: str, hint: Any) -> PortType:
    """The port type, or that of a Python or NumPy type. Raises WiringError if there is none."""
    try:
        return _type_of(hint, ())
    except _Unknown as unknown:
        part = unknown.args[0]
        inside = "" if part is hint else f", in {_shown(hint)}"
        more = "; for a class of your own that is no dataclass: fo.any_"
        raise WiringError(
            f"{where}: expected a port type such as fo.int64, given {brief_repr(part)}{inside}"
            f"{more if isinstance(part, type) else ''}"
        ) from None


def _type_of(hint: Any, within: tuple[type, ...]) -> PortType:
    """within: classes whose fields are looked at. Raises _Unknown for a part without a type."""
    if isinstance(hint, PortType):
        return hint
    if isinstance(hint, NewType):
        return _type_of(hint.__supertype__, within)
    origin = get_origin(hint)
    if origin is None and (hint is None or hint is Any or isinstance(hint, type)):
        known = _PYTHON_TYPES.get(hint)
        return known if known is not None else _by_class(hint, within)
    if origin is Annotated:
        own = [part for part in hint.__metadata__ if isinstance(part, PortType)]
        return own[0] if own else _type_of(hint.__origin__, within)
    if origin is Literal:
        return Choice(f"Literal[{', '.join(map(repr, get_args(hint)))}]", get_args(hint))
    if origin is Union or origin is types.UnionType:
        return _one_of([_type_of(part, within) for part in get_args(hint)])
    if isinstance(origin, type):
        return _generic(hint, origin, get_args(hint), within)
    raise _Unknown(hint)


def _one_of(options: list[PortType]) -> PortType:
    """An option that takes anything takes the others, too."""
    if any_ in options:
        return any_
    return OneOf(" | ".join(map(str, options)), tuple(options))


def _generic(hint: Any, origin: type, given: tuple[Any, ...], within: tuple[type, ...]) -> PortType:
    if origin is tuple:
        return _tuple(given, within)
    if origin in _LISTS and len(given) == 1:
        item = _type_of(given[0], within)
        return ListOf(f"{origin.__name__}[{item}]", _LISTS[origin], item)
    if origin in _DICTS and len(given) == 2:
        key, value = (_type_of(part, within) for part in given)
        return DictOf(f"dict[{key}, {value}]", key, value)
    if _is_numpy(origin, "ndarray"):
        return _array_of(given)
    if _is_record(origin):
        return _by_class(origin, within)
    raise _Unknown(hint)


def _tuple(given: tuple[Any, ...], within: tuple[type, ...]) -> PortType:
    if len(given) == 2 and given[1] is Ellipsis:
        item = _type_of(given[0], within)
        return ListOf(f"tuple[{item}, ...]", (tuple,), item)
    items = tuple(_type_of(part, within) for part in given)
    return TupleOf(f"tuple[{', '.join(map(str, items)) or '()'}]", items)


def _array_of(given: tuple[Any, ...]) -> PortType:
    """NDArray[np.float64]: the second argument is np.dtype[np.float64]."""
    parts = get_args(given[1]) if len(given) > 1 else ()
    try:
        return array(parts[0])
    except (TypeError, IndexError):  # of no dtype that a port knows: of any
        return array()


def _by_class(hint: Any, within: tuple[type, ...]) -> PortType:
    if hint in _LISTS or hint is tuple:
        kinds = _LISTS.get(hint, (tuple,))
        return ListOf(hint.__name__, kinds, any_)
    if hint in _DICTS:
        return DictOf("dict", any_, any_)
    if issubclass(hint, PurePath):
        return File
    if _is_record(hint):
        return _object(hint, within)
    if _is_numpy(hint, "ndarray"):
        return array()
    name = hint.__name__.rstrip("_")
    if hint.__module__ == "numpy" and name in ("complex64", "complex128"):
        return complex64 if name == "complex64" else complex128
    found = getattr(_ports, f"{name}_", getattr(_ports, hint.__name__, None))
    if hint.__module__ == "numpy" and isinstance(found, PortType):
        return found
    raise _Unknown(hint)


def _is_numpy(kind: type, name: str) -> bool:
    return kind.__module__ == "numpy" and kind.__name__ == name


def _is_record(kind: type) -> bool:
    """Whether its instances are values with known fields: a dataclass, NamedTuple or Enum."""
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return hasattr(kind, "__dataclass_fields__") or named or issubclass(kind, Enum)


def _object(kind: type, within: tuple[type, ...]) -> ObjectOf:
    """Of a class inside itself the fields are not looked at again."""
    names = names_of(kind)
    shown = kind.__qualname__.rpartition("<locals>.")[2]
    fields = () if kind in within else tuple(_fields(kind, (*within, kind)))
    return ObjectOf(shown, names[0], names, fields)


def _fields(kind: Any, within: tuple[type, ...]) -> Iterator[tuple[str, PortType]]:
    """(name, type) of those whose type can be checked; others may hold anything."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception:  # a name in them is not known where the class stands
        return
    for name in getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ())):
        try:
            type_ = _type_of(hints.get(name, Any), within)
        except _Unknown:
            continue
        if type_ != any_:
            yield name, type_


def _shown(hint: Any) -> str:
    return " ".join(str(hint).split())
