"""How functions reach a worker: by name where it has the same one, else by value.

Standard library only, cloudpickle aside: each worker is sent this file.
"""

import importlib
import io
import marshal
import operator
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeGuard

Source = tuple[Any, ...]
"""("name", module, name in it, facts) or ("value", pickle)."""

_registering = threading.Lock()  # cloudpickle has one register for all


def named(fun: Callable[..., Any]) -> Source | None:
    """By its name, where that leads to this very function; what it must be, by its facts."""
    name = _name(fun)
    if not name or not isinstance(fun, types.FunctionType):
        return None
    return "name", fun.__module__, name, facts_of(fun)


def _name(fun: Callable[..., Any]) -> str:
    """Its name in its module or ""; a decorated one is behind what the module has by its name."""
    module = sys.modules.get(getattr(fun, "__module__", None) or "__main__")
    if not isinstance(fun, types.FunctionType) or module is None or module.__name__ == "__main__":
        return ""
    for route in ("", ".body.fun", ".__wrapped__"):
        name: str = fun.__qualname__ + route
        try:
            if operator.attrgetter(name)(module) is fun:
                return name
        except AttributeError:
            continue
    return ""


def by_value(fun: Callable[..., Any]) -> Source | None:
    """What has no name, as a pickle; what it uses of other modules is there by name."""
    return None if _name(fun) else ("value", dumps(fun))


def dumps(thing: object) -> bytes:
    """A pickle, in which what is of a script goes by value."""
    try:
        body = pickle.dumps(thing, 5)
    except Exception:
        body = b"__main__"
    return dumps_by_value(thing) if b"__main__" in body else body


def dumps_by_value(
    thing: object, protocol: int = 5, buffer_callback: Callable[..., Any] | None = None
) -> bytes:
    """As pickle.dumps; what has no name elsewhere is in it whole."""
    body = io.BytesIO()
    _pickler()(body, protocol, buffer_callback=buffer_callback).dump(thing)
    return body.getvalue()


@cache
def _pickler() -> type[Any]:
    class Pickler(_cloudpickle().Pickler):  # type: ignore[misc]
        """cloudpickle's, but code keeps its file's name, which cloudpickle 3.1.3 takes away.

        Both ends run one version of Python, so that code may cross as marshal writes it.
        """

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, types.CodeType):
                return marshal.loads, (marshal.dumps(thing),)
            return super().reducer_override(thing)

    return Pickler


def by_value_with_module(fun: Callable[..., Any]) -> Source:
    """As a pickle that has all in it which the function uses of its own module."""
    return "value", dumps_with_modules(fun, [fun])


def dumps_with_modules(thing: object, functions: Iterable[Callable[..., Any]]) -> bytes:
    """A pickle that has all in it which it uses of the modules of these functions."""
    cloudpickle = _cloudpickle()
    names = {getattr(fun, "__module__", None) or "" for fun in functions}
    with _registering:
        known = cloudpickle.list_registry_pickle_by_value()
        new = [sys.modules[name] for name in names if name in sys.modules and name not in known]
        for module in new:
            cloudpickle.register_pickle_by_value(module)
        try:
            return dumps_by_value(thing)
        finally:
            for module in new:
                cloudpickle.unregister_pickle_by_value(module)


Way = Callable[[Callable[..., Any]], Source | None]
WAYS: tuple[Way, ...] = (
    named,
    by_value,
    by_value_with_module,
)
"""To be tried in this order."""


def _cloudpickle() -> Any:
    return importlib.import_module("cloudpickle")


def load(kind: str, *source: Any) -> Any:
    """A function: ("value", pickle), or ("name", module, name, route to it, its facts)."""
    if kind == "value":
        return pickle.loads(source[0])
    module, name, facts = source
    found = operator.attrgetter(name)(importlib.import_module(module))
    mine = facts_of(found)
    other = sorted(name for name in {**facts, **mine} if facts.get(name) != mine.get(name))
    if other:
        raise ImportError(f"{module} is another here: {', '.join(other)}")
    return found


def facts_of(fun: types.FunctionType) -> dict[str, object]:
    """What a function computes: its code, that of the functions of its module which it calls, and
    the plain constants that they read, by name. Equal facts, equal function."""
    facts: dict[str, object] = {}
    waiting = [fun]
    while waiting:
        this = waiting.pop()
        facts[this.__qualname__] = _code_facts(this.__code__)
        for name, value in _read_by(this):
            if _is_constant(value):
                facts[f"{name} of {this.__qualname__}"] = repr(value)
            elif _belongs(value, fun.__module__) and value.__qualname__ not in facts:
                waiting.append(value)
    return facts


def _belongs(value: object, module: str) -> TypeGuard[types.FunctionType]:
    return isinstance(value, types.FunctionType) and value.__module__ == module


def _read_by(fun: types.FunctionType) -> Iterator[tuple[str, object]]:
    for name in _names(fun.__code__):
        if name in fun.__globals__:
            yield name, fun.__globals__[name]
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield "defaults", (fun.__defaults__, tuple((fun.__kwdefaults__ or {}).items()))


def _code_facts(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(
        _code_facts(c) if isinstance(c, types.CodeType) else _text(c) for c in code.co_consts
    )
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _text(constant: object) -> str:
    if isinstance(constant, frozenset):  # its order differs between processes
        return str(sorted(map(repr, constant)))
    return repr(constant)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, (int, float, complex, str, bytes, type(None)))
