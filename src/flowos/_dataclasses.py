"""`dataclass`, `field`, `fields` and `replace`, for all classes of data in this house.

To type checkers they are those of the standard library, which writes and compiles six methods of
each class: 0.4 ms, and 8 ms to be imported, in every command. Here all classes share one set of
methods, and a class of which many instances are made gets the written ones, which are quicker.
What a class is asked rarely (its fields, its signature, what is wrong with a call) a twin made by
the standard library answers, so that `dataclasses.fields`, `asdict` and `replace` take these
classes too.

Options are `frozen`, `kw_only`, `slots`, `eq` and `repr`; of a field `default`, `default_factory`,
`init`, `repr`, `compare` and `metadata`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

_MANY = 500
"""Instances after which the written methods pay."""
_MISSING: Any = object()
_FACTORY = "_HAS_DEFAULT_FACTORY_CLASS"
"""Class of the default that a signature shows of a field with a factory: it may be given, too."""
_put = object.__setattr__


class _Field:
    """options: those of `dataclasses.field` but for defaults. name, type: of the class's body."""

    __slots__ = ("default", "kw_only", "make", "name", "options", "type")

    def __init__(
        self, *, default: object = _MISSING, default_factory: Any = None, **options: Any
    ) -> None:
        self.default, self.make = default, default_factory
        self.options = options
        self.name = ""
        self.type: Any = None
        self.kw_only = False

    def __class_getitem__(cls, _: object) -> type:
        return cls

    @property
    def metadata(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.options.get("metadata", {})
        return found

    def like(self) -> Any:
        """The same to the standard library."""
        from dataclasses import field

        default = {} if self.default is _MISSING else {"default": self.default}
        made = {"default_factory": self.make} if self.make else {}
        options: dict[str, Any] = {**default, **made, **self.options}
        return field(kw_only=self.kw_only, **options)


class _Form:
    """What the methods know of a class.

    fields: by name, with those of its bases. allowed: what a call may name; complete: what then has
    a value. made: instances so far. shared: the methods that it has of those below.
    """

    def __init__(self, cls: type, options: Mapping[str, bool]) -> None:
        self.cls, self.options = cls, options
        self.own = _own_fields(cls, kw_only=options["kw_only"])
        bases = [_forms[base] for base in cls.__mro__[:0:-1] if base in _forms]
        self.fields: dict[str, _Field] = {}
        for form in bases:
            self.fields |= form.fields
        self.fields |= self.own
        self.slotted: bool = options["slots"] or any(form.slotted for form in bases)
        given = [n for n, each in self.fields.items() if each.options.get("init", True)]
        self.arguments, self.allowed = given, frozenset(given)
        self.positional = tuple(n for n in given if not self.fields[n].kw_only)
        self.defaults = {n: f.default for n, f in self.fields.items() if f.default is not _MISSING}
        self.makes = [(n, f.make) for n, f in self.fields.items() if f.make]
        self.complete = self.allowed | self.defaults.keys() | {name for name, _ in self.makes}
        self.compared = _reader(self._with("compare"))
        self.shown = self._with("repr")
        self.made = 0
        self.shared: frozenset[str] = frozenset()

    def _with(self, option: str) -> list[str]:
        return [n for n, each in self.fields.items() if each.options.get(option, True)]


class _Forms(dict[type, _Form]):
    def __missing__(self, cls: type) -> _Form:
        """That of the dataclass which `cls` derives from, being none itself."""
        return next(self[base] for base in cls.__mro__ if base in self)


_forms = _Forms()


def _own_fields(cls: type, *, kw_only: bool) -> dict[str, _Field]:
    found: dict[str, _Field] = {}
    for name, hint in cls.__annotations__.items():
        if getattr(hint, "__origin__", hint) is ClassVar:
            continue
        default = vars(cls).get(name, _MISSING)
        each = found[name] = default if isinstance(default, _Field) else _Field(default=default)
        each.name, each.type, each.kw_only = name, hint, kw_only
        hash(each.default)  # raises for a list: all instances would share it
    return found


def _reader(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _dataclass(
    *,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Callable[[type], type]:
    options = {"frozen": frozen, "kw_only": kw_only, "slots": slots, "eq": eq, "repr": repr}
    methods = {**_ALWAYS, **(_SLOTTED if slots else {}), **(_FROZEN if frozen else {})}
    if eq:
        methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if repr:
        methods["__repr__"] = _repr

    def known(cls: type) -> type:
        form = _Form(cls, options)
        body = {n: each for n, each in methods.items() if n not in vars(cls)}
        body["__match_args__"] = form.positional
        form.shared = frozenset(body)
        form.cls = _with_slots(cls, form, body) if slots else _with_body(cls, form, body)
        _forms[form.cls] = form
        return form.cls

    return known


def _with_body(cls: type, form: _Form, body: dict[str, Any]) -> type:
    for name, each in form.own.items():
        if each.default is not _MISSING:
            body[name] = each.default
        elif name in vars(cls):
            delattr(cls, name)
    for name, value in body.items():
        setattr(cls, name, value)
    return cls


def _with_slots(cls: type, form: _Form, body: dict[str, Any]) -> type:
    """Slots are made with a class: another one with the same body."""
    there = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    left_out = {"__dict__", "__weakref__", *form.own}
    body |= {n: value for n, value in vars(cls).items() if n not in left_out and n not in body}
    body["__slots__"] = tuple(name for name in form.own if name not in there)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _init(self: Any, /, *given: object, **named: object) -> None:
    form = _forms[type(self)]
    values = {**form.defaults, **named}
    if given:
        names = form.positional[: len(given)]
        values.update(zip(names, given, strict=False))
        fits = len(names) == len(given) and named.keys().isdisjoint(names)
    else:
        fits = True
    for name, make in form.makes:
        if name not in values or type(values[name]).__name__ == _FACTORY:
            values[name] = make()
    if not fits or values.keys() != form.complete or not named.keys() <= form.allowed:
        _twin(form.cls)(*given, **named)  # it says what is wrong
    if form.slotted:
        for name, value in values.items():
            _put(self, name, value)
    else:
        self.__dict__.update(values)
    if hasattr(self, "__post_init__"):
        self.__post_init__()
    form.made = made = form.made + 1
    if made == _MANY:
        _write_methods(form)


def _write_methods(form: _Form) -> None:
    written = vars(_twin(form.cls))
    for name in form.shared & {"__init__", "__eq__", "__hash__", "__repr__"}:
        setattr(form.cls, name, written[name])


def _eq(self: object, other: object) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    values = _forms[type(self)].compared
    return values(self) == values(other)


def _hash(self: object) -> int:
    return hash(_forms[type(self)].compared(self))


def _repr(self: object) -> str:
    values = ", ".join(f"{n}={getattr(self, n)!r}" for n in _forms[type(self)].shown)
    return f"{type(self).__qualname__}({values})"


def _replace(self: Any, /, **changes: object) -> Any:
    if type(self) not in _forms:
        from dataclasses import replace

        return replace(self, **changes)
    kept = {name: getattr(self, name) for name in _forms[type(self)].arguments}
    return type(self)(**kept | changes)


def _fields(of: Any) -> tuple[Any, ...]:
    """Of a class or an instance, in order. Not all that those of the standard library have."""
    cls = of if isinstance(of, type) else type(of)
    if cls not in _forms:
        from dataclasses import fields

        return fields(of)
    return tuple(_forms[cls].fields.values())


def _set(self: object, name: str, value: object) -> None:
    _refuse_change(self, name)
    _put(self, name, value)


def _delete(self: object, name: str) -> None:
    _refuse_change(self, name)
    object.__delattr__(self, name)


def _refuse_change(self: object, name: str) -> None:
    """A class that derives from one may have attributes of its own."""
    if type(self) in _forms or name in _forms[type(self)].fields:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")


def _get_state(self: object) -> list[object]:
    return [getattr(self, name) for name in _forms[type(self)].fields]


def _set_state(self: object, state: list[object]) -> None:
    for name, value in zip(_forms[type(self)].fields, state, strict=True):
        _put(self, name, value)


class _FromTwin:
    """An attribute of a class that only its twin has."""

    def __init__(self, read: Callable[[type], object]) -> None:
        self._read = read

    def __get__(self, _: object, cls: type) -> object:
        return self._read(_twin(_forms[cls].cls))


@cache
def _twin(cls: type) -> type:
    from dataclasses import make_dataclass

    form = _forms[cls]
    options: Any = {name: form.options[name] for name in ("frozen", "slots", "eq", "repr")}
    fields = [(name, each.type, each.like()) for name, each in form.fields.items()]
    body: dict[str, Any] = {"__qualname__": cls.__qualname__}
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    return make_dataclass(cls.__name__, fields, namespace=body, **options)


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
        given = [(n, form.fields[n]) for n in form.arguments]
        return tuple(
            Parameter(n, f.default is _MISSING and not f.make, f.metadata) for n, f in given
        )
    if not hasattr(cls, "__dataclass_fields__"):
        return None
    from dataclasses import MISSING, fields

    return tuple(
        Parameter(f.name, f.default is MISSING and f.default_factory is MISSING, f.metadata)
        for f in fields(cls)
        if f.init
    )


_ALWAYS: dict[str, Any] = {
    "__init__": _init,
    "__replace__": _replace,
    "__dataclass_fields__": _FromTwin(lambda twin: vars(twin)["__dataclass_fields__"]),
    "__dataclass_params__": _FromTwin(lambda twin: vars(twin)["__dataclass_params__"]),
    "__signature__": _FromTwin(_signature),
}
_FROZEN: dict[str, Any] = {"__setattr__": _set, "__delattr__": _delete}
_SLOTTED: dict[str, Any] = {"__getstate__": _get_state, "__setstate__": _set_state}

if TYPE_CHECKING:
    from dataclasses import MISSING as MISSING
    from dataclasses import Field as Field
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    MISSING, Field = _MISSING, _Field
    dataclass, field, fields, replace = _dataclass, _Field, _fields, _replace
