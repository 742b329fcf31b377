"""`dataclass`, `field`, `fields` and `replace`, for all classes of data in this house.

To type checkers they are those of the standard library, which writes and compiles six methods of
each class: 0.4 ms, and 8 ms to be imported, in every command. Here all classes share the code of
their methods; one of which many instances are made gets the written `__init__`, which is quicker.
What a class is asked rarely (its fields, its signature, what is wrong with a call) a twin made by
the standard library answers, so that `dataclasses.fields`, `asdict` and `replace` take these
classes too.

Options are `frozen`, `kw_only`, `slots`, `eq` and `repr`; of a field `default`, `default_factory`,
`init`, `repr`, `compare` and `metadata`. Bases that are dataclasses are made here, too.
"""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

_MANY = 5000
"""Instances after which the written `__init__` pays, and the import that it takes."""
_MISSING: Any = object()
_FACTORY = "_HAS_DEFAULT_FACTORY_CLASS"
"""Class of the default that a signature shows of a field with a factory: it may be given, too."""
_put = object.__setattr__


class _Field:
    """make: its default factory. name, type, kw_only: of the class's body."""

    name: str
    type: Any
    kw_only: bool

    def __init__(
        self,
        *,
        default: object = _MISSING,
        default_factory: Callable[[], object] | None = None,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.default, self.make, self.metadata = default, default_factory, metadata or {}
        self.init, self.repr, self.compare = init, repr, compare
        self.required = init and default is _MISSING and not default_factory

    def __class_getitem__(cls, _: object) -> "type[_Field]":
        return cls

    def like(self) -> Any:
        """The same to the standard library."""
        from dataclasses import MISSING, field

        same: Any = {n: getattr(self, n) for n in ("init", "repr", "compare", "kw_only")}
        default: Any = MISSING if self.default is _MISSING else self.default
        make: Any = self.make or MISSING
        return field(default=default, default_factory=make, metadata=self.metadata, **same)


class _Form:
    """What the methods know of a class.

    fields: by name, with those of its bases. values: in order, what an instance has of its own
    before `__post_init__`: a default, or what takes the place of an argument until it is known.
    init: the class's `__init__`, unless its body has one. made: instances so far.
    """

    def __init__(self, cls: type, options: Mapping[str, bool]) -> None:
        self.cls, self.options = cls, options
        self.own = _own_fields(cls, kw_only=options["kw_only"])
        bases = [_forms[base] for base in cls.__mro__[-2:0:-1] if base in _forms]
        self.fields: dict[str, _Field] = {}
        for form in bases:
            self.fields |= form.fields
        self.fields |= self.own
        self.slotted: bool = options["slots"] or any(form.slotted for form in bases)
        every = self.fields.items()
        self.arguments = frozenset([name for name, each in every if each.init])
        self.positional = tuple([name for name, each in every if each.init and not each.kw_only])
        self.required = frozenset([name for name, each in every if each.required])
        self.makes = [(name, each.make) for name, each in every if each.make]
        self.values = {
            name: each.default
            for name, each in every
            if each.init or each.make or (options["slots"] and each.default is not _MISSING)
        }
        self.has_more = hasattr(cls, "__post_init__")
        self.init: Any = None
        self.made = 0

    def methods(self) -> dict[str, Any]:
        found = {**_ALWAYS, "__init__": _init_of(self), "__match_args__": self.positional}
        if self.options["frozen"]:
            found |= {"__setattr__": _set, "__delattr__": _delete}
            if self.options["slots"]:
                found |= {"__getstate__": _get_state, "__setstate__": _set_state}
        if self.options["eq"]:
            equal, hashed = _comparison_by([n for n, each in self.fields.items() if each.compare])
            found |= {"__eq__": equal, "__hash__": hashed if self.options["frozen"] else None}
        if self.options["repr"]:
            found["__repr__"] = _repr
        there = vars(self.cls)  # with an __eq__ of its own a class has None for __hash__
        return {name: each for name, each in found.items() if there.get(name) is None}


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
        default = getattr(cls, name, _MISSING)
        if isinstance(default, MemberDescriptorType):  # a slot of a base
            default = _MISSING
        each = found[name] = default if isinstance(default, _Field) else _Field(default=default)
        each.name, each.type, each.kw_only = name, hint, kw_only
        if type(each.default).__hash__ is None:  # all instances would share it
            what = f"mutable default {type(each.default)} for field {name}"
            raise ValueError(f"{what} is not allowed: use default_factory")
    return found


def _dataclass(
    *,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Callable[[type], type]:
    options = {"frozen": frozen, "kw_only": kw_only, "slots": slots, "eq": eq, "repr": repr}

    def known(cls: type) -> type:
        form = _Form(cls, options)
        body = form.methods()
        form.init = body.get("__init__")
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
    body = {**{n: value for n, value in vars(cls).items() if n not in left_out}, **body}
    body["__slots__"] = tuple(name for name in form.own if name not in there)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _init_of(form: _Form) -> Callable[..., None]:
    def init(self: Any, /, *given: object, **named: object) -> None:
        passed = dict(zip(form.positional, given)) | named if given else named  # noqa: B905
        right = form.required <= passed.keys() <= form.arguments
        if not right or len(passed) < len(given) + len(named):
            _twin(form.cls)(*given, **named)  # it says what is wrong
        values = form.values | passed
        for name, make in form.makes:
            if name not in passed or type(passed[name]).__name__ == _FACTORY:
                values[name] = make()
        if form.slotted:
            for name, value in values.items():
                _put(self, name, value)
        else:
            self.__dict__.update(values)
        if form.has_more:
            self.__post_init__()
        form.made = made = form.made + 1
        if made == _MANY:
            form.init = vars(_twin(form.cls))["__init__"]
            setattr(form.cls, "__init__", form.init)  # noqa: B010 - type checkers refuse the other

    return init


def _comparison_by(names: list[str]) -> tuple[Callable[..., Any], Callable[..., int]]:
    values: Callable[[object], tuple[object, ...]]
    if len(names) > 1:
        values = attrgetter(*names)
    else:
        values = lambda one: tuple(getattr(one, name) for name in names)  # noqa: E731

    def equal(self: object, other: object) -> Any:
        return values(self) == values(other) if type(self) is type(other) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    return equal, hashed


@recursive_repr()
def _repr(self: object) -> str:
    shown = (name for name, each in _forms[type(self)].fields.items() if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"


def _replace(self: Any, /, **changes: object) -> Any:
    form = _forms.get(type(self))
    if form is None or not changes.keys() <= form.arguments:
        from dataclasses import replace

        return replace(self, **changes)
    return type(self)(**{name: getattr(self, name) for name in form.arguments} | changes)


def _fields(of: Any) -> tuple[Any, ...]:
    """Of a class or an instance, in order. Not all that those of the standard library have."""
    cls = of if isinstance(of, type) else type(of)
    if cls not in _forms:
        from dataclasses import fields

        return fields(of)
    return tuple(_forms[cls].fields.values())


def _set(self: object, name: str, value: object) -> None:
    _refuse_change(self, name, "assign to")
    _put(self, name, value)


def _delete(self: object, name: str) -> None:
    _refuse_change(self, name, "delete")
    object.__delattr__(self, name)


def _refuse_change(self: object, name: str, what: str) -> None:
    """A class that derives from one may have attributes of its own."""
    if type(self) in _forms or name in _forms[type(self)].fields:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _get_state(self: object) -> list[object]:
    return [getattr(self, name) for name in _forms[type(self)].fields]


def _set_state(self: object, state: list[object]) -> None:
    for name, value in zip(_forms[type(self)].fields, state, strict=True):
        _put(self, name, value)


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


class _FromTwin:
    """An attribute of a class that only its twin has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _: object, cls: type) -> object:
        return vars(_twin(_forms[cls].cls))[self._name]


class _Signature:
    """Of a class without an `__init__` of its own; an instance that is called has another one."""

    def __get__(self, one: object, cls: type) -> object:
        form = _forms[cls]
        if one is not None or cls.__init__ is not form.init:  # type: ignore[misc]
            raise AttributeError("__signature__")
        from inspect import signature

        return signature(_twin(form.cls))


class Parameter(NamedTuple):
    """A field that the constructor takes."""

    name: str
    required: bool
    metadata: Mapping[str, Any]


def parameters(cls: type) -> tuple[Parameter, ...] | None:
    """Of a dataclass of either kind; None of another class."""
    return _parameters(cls)


@cache
def _parameters(cls: type) -> tuple[Parameter, ...] | None:
    if form := _forms.get(cls):
        given = (each for each in form.fields.values() if each.init)
        return tuple(Parameter(each.name, each.required, each.metadata) for each in given)
    if not hasattr(cls, "__dataclass_fields__"):
        return None
    from dataclasses import MISSING, fields

    return tuple(
        Parameter(f.name, f.default is MISSING and f.default_factory is MISSING, f.metadata)
        for f in fields(cls)
        if f.init
    )


_ALWAYS: dict[str, Any] = {
    "__replace__": _replace,
    "__dataclass_fields__": _FromTwin("__dataclass_fields__"),
    "__dataclass_params__": _FromTwin("__dataclass_params__"),
    "__signature__": _Signature(),
}

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
