"""`dataclass`, `field` and `replace`, for the frozen data that every command loads.

To type checkers they are those of the standard library, which writes and compiles six methods of
each class: 0.4 ms, and 8 ms to be imported. Here all classes share one set of methods. What a class
is asked rarely (its fields, its signature, what is wrong with a call) a twin made by the standard
library answers, so that `dataclasses.fields`, `asdict` and `replace` take these classes too.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

_NONE: Any = object()


class _Field:
    """A default, if it has one, with options of `dataclasses.field`."""

    def __init__(self, *, default: object = _NONE, **options: Any) -> None:
        self.default = default
        self.options = options


class _Form:
    """What the methods know of a class. The instances' values lie in their `__dict__`."""

    def __init__(self, cls: type, *, kw_only: bool) -> None:
        found = {name: vars(cls)[name] for name in cls.__annotations__ if name in vars(cls)}
        options = {n: each.options for n, each in found.items() if isinstance(each, _Field)}
        self.kw_only = kw_only
        self.options = options
        given = {n: each.default if n in options else each for n, each in found.items()}
        self.defaults = {n: default for n, default in given.items() if default is not _NONE}
        hash(tuple(self.defaults.values()))  # raises for a list: all instances would share it
        self.names = tuple(cls.__annotations__)
        self.arguments = tuple(n for n in self.names if options.get(n, {}).get("init", True))
        self.positional = () if kw_only else self.arguments
        self.allowed = frozenset(self.arguments)
        self.required = self.allowed - self.defaults.keys()
        self.compared = tuple(n for n in self.names if options.get(n, {}).get("compare", True))
        self.shown = tuple(n for n in self.names if options.get(n, {}).get("repr", True))


_forms: dict[type, _Form] = {}


def _dataclass(*, frozen: bool, kw_only: bool = False) -> Callable[[type], type]:
    assert frozen

    def known(cls: type) -> type:
        form = _forms[cls] = _Form(cls, kw_only=kw_only)
        for name, value in {**_METHODS, **form.defaults, "__match_args__": form.positional}.items():
            setattr(cls, name, value)
        for name in form.options.keys() - form.defaults.keys():
            delattr(cls, name)
        return cls

    return known


def _init(self: Any, /, *given: object, **named: object) -> None:
    cls: type = type(self)
    form = _forms[cls]
    values = {**dict(zip(form.positional, given, strict=False)), **named} if given else named
    complete = form.required <= values.keys() <= form.allowed
    if not complete or len(values) != len(given) + len(named):
        _twin(cls)(*given, **named)  # it says what is wrong
    self.__dict__.update(form.defaults, **values)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _compared(self: object) -> tuple[object, ...]:
    values = vars(self)
    return tuple(values[name] for name in _forms[type(self)].compared)


def _eq(self: object, other: object) -> bool:
    return _compared(self) == _compared(other) if type(self) is type(other) else NotImplemented


def _repr(self: object) -> str:
    values = ", ".join(f"{n}={vars(self)[n]!r}" for n in _forms[type(self)].shown)
    return f"{type(self).__qualname__}({values})"


def _replace(self: Any, /, **changes: object) -> Any:
    kept = {name: vars(self)[name] for name in _forms[type(self)].arguments}
    return type(self)(**kept | changes)


def _refuse(self: object, name: str, *_: object) -> NoReturn:  # noqa: ARG001
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")


class _FromTwin:
    """An attribute of a class that only its twin has."""

    def __init__(self, read: Callable[[type], object]) -> None:
        self._read = read

    def __get__(self, _: object, cls: type) -> object:
        return self._read(_twin(cls))


@cache
def _twin(cls: type) -> type:
    from dataclasses import field, make_dataclass

    form = _forms[cls]
    options: dict[str, Any] = {n: {"default": value} for n, value in form.defaults.items()}
    for name, more in form.options.items():
        options[name] = options.get(name, {}) | more
    hints: dict[str, Any] = cls.__annotations__
    fields = [(name, hint, field(**options.get(name, {}))) for name, hint in hints.items()]
    body = {"__qualname__": cls.__qualname__}
    return make_dataclass(cls.__name__, fields, frozen=True, kw_only=form.kw_only, namespace=body)


def _signature(twin: type) -> object:
    from inspect import signature

    return signature(twin)


class Parameter(NamedTuple):
    """A field that the constructor takes."""

    name: str
    required: bool
    metadata: Mapping[str, Any]


def parameters(cls: type) -> tuple[Parameter, ...] | None:
    """Of a dataclass of either kind; None of another class."""
    if form := _forms.get(cls):
        options = form.options
        return tuple(
            Parameter(n, n in form.required, options.get(n, {}).get("metadata", {}))
            for n in form.arguments
        )
    if not hasattr(cls, "__dataclass_fields__"):
        return None
    from dataclasses import MISSING, fields

    return tuple(
        Parameter(f.name, f.default is MISSING and f.default_factory is MISSING, f.metadata)
        for f in fields(cls)
        if f.init
    )


_METHODS: dict[str, object] = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": lambda self: hash(_compared(self)),
    "__repr__": _repr,
    "__replace__": _replace,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__dataclass_fields__": _FromTwin(lambda twin: vars(twin)["__dataclass_fields__"]),
    "__signature__": _FromTwin(_signature),
}

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:
    dataclass, field, replace = _dataclass, _Field, _replace
