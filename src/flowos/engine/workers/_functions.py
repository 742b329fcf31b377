"""How functions reach a worker: by name where it has the same one, else by value.

Standard library only, cloudpickle aside: each worker is sent this file.
"""

import contextlib
import functools
import importlib
import io
import itertools
import marshal
import opcode
import operator
import os
import pickle
import re
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

FunctionSource = tuple[Any, ...]
"""("name", module, name in it, facts, state) or ("value", pickle, facts, state of these facts)."""
_FOLLOWED = 100  # items of a container that are looked at for functions
_MAX_COMPARED = (
    20_000  # of larger values nothing is compared: an item counts 2, 64 bytes of a text 1
)
_STANDARD = importlib.__file__.removesuffix("importlib/__init__.py")
_INSTALLED = re.compile("/(site|dist)-packages/")
_IMPORT = opcode.opmap["IMPORT_NAME"]
_CONTAINERS = {dict, list, tuple, set, frozenset}
_SIZED = {str, bytes, *_CONTAINERS}
_LEAVES = {type(None), bool, int, float, complex, type(...), str, bytes}
_NAMESPACES = {"types.SimpleNamespace", "argparse.Namespace"}
_registering = threading.Lock()  # cloudpickle has one register for all


def named(fun: Callable[..., Any]) -> FunctionSource | None:
    """By its name, where that leads to this very function; what it must be, by its facts."""
    name = _name(fun)
    if not name or not isinstance(fun, types.FunctionType):
        return None
    return "name", fun.__module__, name, *_facts_and_state(fun)


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


def by_value(fun: Callable[..., Any]) -> FunctionSource | None:
    """What has no name, as a pickle; what it uses of other modules is there by name."""
    return None if _name(fun) else ("value", dumps(fun), *_facts_and_state(fun, "__main__"))


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
    class Pickler(importlib.import_module("cloudpickle").Pickler):  # type: ignore[misc]
        """cloudpickle's, but code keeps its file's name and a class its slots (not so in 3.1.3)."""

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, types.CodeType):
                return marshal.loads, (marshal.dumps(thing),)  # both ends run one Python
            made = super().reducer_override(thing)
            if isinstance(made, tuple) and isinstance(thing, type) and "__slots__" in vars(thing):
                kind, _, bases, more, *_ = made[1]
                if isinstance(kind, type) and NamedTuple not in bases:  # else it is no plain class
                    more["__slots__"] = vars(thing)["__slots__"]
            return made

    return Pickler


def by_value_with_module(fun: Callable[..., Any]) -> FunctionSource:
    """As a pickle that has all in it which the function uses of its own module."""
    return "value", dumps_with_modules(fun, [fun]), *_facts_and_state(fun, _home(fun))


def by_value_with_modules(fun: Callable[..., Any]) -> FunctionSource | None:
    """The same of all modules of the user's own that it uses."""
    home = _home(fun)
    names = {module for module, _ in facts_of(fun)} - {home}
    if not names:
        return None
    return "value", _dumps_with(fun, {home, *names}), *_facts_and_state(fun, home)


def dumps_with_modules(thing: object, functions: Iterable[Callable[..., Any]]) -> bytes:
    """A pickle that has all in it which it uses of the modules of these functions."""
    return _dumps_with(thing, {getattr(fun, "__module__", None) or "" for fun in functions})


def _dumps_with(thing: object, names: set[str]) -> bytes:
    cloudpickle = importlib.import_module("cloudpickle")
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


def _home(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__module__", None) or "__main__"


SendingWay = Callable[[Callable[..., Any]], FunctionSource | None]
WAYS: tuple[SendingWay, ...] = (named, by_value, by_value_with_module, by_value_with_modules)
"""To be tried in this order."""


def load(kind: str, *source: Any) -> Any:
    """A function from its source. It finds the same here as where it comes from, or ImportError."""
    *where, facts, state = source
    if kind == "value":
        found = pickle.loads(where[0])
    else:
        module, name = where
        found = operator.attrgetter(name)(importlib.import_module(module))
    _agree(found, facts, state)
    return found


def _agree(fun: Any, facts: "FunctionFacts", state: bytes) -> None:
    """Values that are others here are set; for code that is another the function comes anew."""
    for module in {module for module, _ in facts} - sys.modules.keys():
        with contextlib.suppress(Exception):  # as where a task tries to import it
            importlib.import_module(module)
    mine = facts_of(fun)
    other = [key for key in facts if key[0] in sys.modules and mine.get(key) != facts[key]]
    values = pickle.loads(state) if other and state else {}
    code = sorted(key for key in other if key not in values)
    if code:
        raise ImportError(f"another here than in the program: {', '.join(map('.'.join, code))}")
    for module, name in other:
        owner, _, last = name.rpartition(".")
        there = sys.modules[module]
        setattr(operator.attrgetter(owner)(there) if owner else there, last, values[module, name])


def _facts_and_state(fun: Callable[..., Any], without: str = "") -> tuple["FunctionFacts", bytes]:
    """What holds where the function comes from, and a pickle of the values among it, for a worker
    that has others. without: a module that goes by value."""
    walk = _Walk(fun)
    apart = {without, "__main__"} if without else set()
    facts = {key: fact for key, fact in walk.facts.items() if key[0] not in apart}
    values = {key: value for key, value in walk.values.items() if key in facts}
    try:
        return facts, dumps(values) if values else b""
    except Exception:  # then the function goes by value if it has to
        return facts, b""


Names = tuple[str, ...]
FunctionFacts = dict[tuple[str, str], object]  # of (module, name in it)


def facts_of(fun: Callable[..., Any]) -> FunctionFacts:
    """What a function computes: its code, that of the functions and classes which it uses of the
    user's own modules, and the plain values that they read. Equal facts, equal function."""
    return _Walk(fun).facts


class _Walk:
    """From a function to all that it uses.

    Names that stand anywhere in its code count as attributes of each own module that it uses: to
    compare one too many costs microseconds.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.facts: FunctionFacts = {}
        self.values: dict[tuple[str, str], object] = {}
        self._home = _home(fun)
        self._seen: dict[int, object] = {}
        self._waiting: list[object] = [fun, *_found_in(fun)]
        while self._waiting:
            self._follow(self._waiting.pop())

    def _follow(self, value: object) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, types.FunctionType):
            if self._is_own(_module_of(value)):
                self._function(value)
        elif isinstance(value, type):
            if self._is_own(value.__module__):
                self._class(value)
        else:
            self._waiting += _within(value)

    def _function(self, fun: types.FunctionType) -> None:
        module, name = _module_of(fun), fun.__qualname__
        while (module, name) in self.facts:  # of two lambdas
            name += " "
        self.facts[module, name] = _code_facts(fun.__code__)
        names = tuple(dict.fromkeys(_names(fun.__code__)))
        modules: set[str] = set()
        for each in names:
            if each in fun.__globals__:
                self._named(module, each, fun.__globals__[each], names, modules)
        for each in _imported(fun.__code__):
            for path in (each, f"{fun.__globals__.get('__package__')}.{each}".rstrip(".")):
                if path in sys.modules:
                    self._attributes(sys.modules[path], names, modules)
        for each, value in _apart(fun):
            content = _content(value)
            if content is None:
                self._waiting.append(value)
            else:
                self.facts[module, f"{each} of {name}"] = content

    def _named(self, module: str, name: str, value: object, names: Names, seen: set[str]) -> None:
        if isinstance(value, types.ModuleType):
            self._attributes(value, names, seen)
            return
        content = _content(value)
        if content is not None:
            self.facts[module, name] = content
            self.values[module, name] = value
        self._waiting.append(value)

    def _attributes(self, module: types.ModuleType, names: Names, modules: set[str]) -> None:
        if module.__name__ in modules or not self._is_own(module.__name__):
            return
        modules.add(module.__name__)
        for name in names:
            if name in vars(module):
                self._named(module.__name__, name, vars(module)[name], names, modules)

    def _class(self, cls: type) -> None:
        self._waiting += cls.__bases__
        for name, member in vars(cls).items():
            if not name.startswith("__") or isinstance(member, types.FunctionType):
                self._named(cls.__module__, f"{cls.__qualname__}.{name}", member, (), set())

    def _is_own(self, module: str) -> bool:
        return module == self._home or _is_own(module)


class _Finder(pickle.Pickler):
    found: list[object]

    def persistent_id(self, thing: Any) -> Any:
        """For all that goes into a pickle; what has one is left out of it."""
        if isinstance(thing, (types.FunctionType, type)):
            self.found.append(thing)
        elif not isinstance(thing, (str, bytes)) and not hasattr(thing, "nbytes"):
            return None
        return 0


def _found_in(fun: Callable[..., Any]) -> list[object]:
    """Functions and classes that an object holds which is called as one."""
    finder = _Finder(io.BytesIO(), 5)
    finder.found = []
    with contextlib.suppress(Exception):  # then its pickle says why
        finder.dump(fun)
    return finder.found


def _module_of(fun: types.FunctionType) -> str:
    return str(fun.__globals__.get("__name__", fun.__module__))  # which functools.wraps leaves


def _is_own(name: str) -> bool:
    """Whether it is the user's own module: not FlowOS, installed, or of Python."""
    module = sys.modules.get(name)
    if module is None or name == "__main__":
        return True
    if name.partition(".")[0] == "flowos":
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return getattr(getattr(module, "__spec__", None), "origin", None) is None
    return not (file.startswith(_STANDARD) or _INSTALLED.search(file))


def _within(value: object) -> Iterable[object]:
    """What more there is to follow of a value that is no function and no class."""
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return itertools.islice(value.values() if isinstance(value, dict) else value, _FOLLOWED)
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, (types.MethodType, functools.partial)):
        return _found_in(value)
    if isinstance(value, (functools._lru_cache_wrapper, staticmethod, classmethod)):
        return (value.__wrapped__,)
    return (type(value),)


def _apart(fun: types.FunctionType) -> Iterator[tuple[str, object]]:
    """What it reads that no module has a name for."""
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield "defaults", (fun.__defaults__, tuple((fun.__kwdefaults__ or {}).items()))


def _code_facts(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(
        _code_facts(c)
        if isinstance(c, types.CodeType)
        else repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)  # in any order
        for c in code.co_consts
    )
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names(code: types.CodeType) -> Iterator[str]:
    """Texts too: a name may be read by getattr."""
    for each in _codes(code):
        yield from each.co_names
        yield from (constant for constant in each.co_consts if isinstance(constant, str))


def _imported(code: types.CodeType) -> Iterator[str]:
    """Names in its body that may be modules which this imports."""
    for each in _codes(code):
        if _IMPORT in each.co_code[::2]:
            yield from each.co_names


def _content(value: object) -> bytes | None:
    """Equal for equal plain values in every process. None for others, and for large ones."""
    if isinstance(value, (types.FunctionType, type)):
        return None
    try:
        return marshal.dumps(_plain(value, [_MAX_COMPARED]), 2)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, room: list[int]) -> Any:
    """The same of types that marshal knows. room: how much more of it is looked at."""
    kind = type(value)
    size = getattr(value, "nbytes", 0) or (len(value) if kind in _SIZED else 0)
    room[0] -= 1 + (size if kind in _CONTAINERS else size // 64)
    if room[0] < 0:
        raise ValueError
    if kind in _LEAVES:
        return value
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, dict):
        return name, [(_plain(k, room), _plain(v, room)) for k, v in value.items()]
    if kind in (list, tuple):
        return name, [_plain(each, room) for each in value]
    if kind in (set, frozenset):
        return name, sorted(repr(_plain(each, room)) for each in value)
    if isinstance(value, os.PathLike):
        return name, os.fspath(value)
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and not value.dtype.hasobject:
        return name, str(value.dtype), getattr(value, "shape", ()), value.tobytes()
    if name in _NAMESPACES or (_is_own(kind.__module__) and hasattr(value, "__dict__")):
        return name, _plain(vars(value), room)
    raise ValueError
