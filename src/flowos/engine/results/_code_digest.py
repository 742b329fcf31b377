"""What a function computes: its code, and what that reads of its module besides its inputs.

Code is compared by its instructions and constants, so that comments and the place in a file do not
count. Names that the instructions read are followed: functions, classes and values of the user's
own modules, also as attributes of a module (`helpers.f`). Installed packages count by name and
version.
"""

import dis
import sys
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from flowos.engine.results._own_sources import Import, named, sources_of
from flowos.engine.results._packages import package_of

_MISSING = object()
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_STORED = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"}
_CONSTANT = {"LOAD_CONST", "LOAD_SMALL_INT"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_LEAVES = {type(None), bool, int, float, complex, str, bytes}
Reads = list[tuple[dict[str, object], str]]
"""Names, each with what it is looked up in: the globals of a function, or a module."""


def parts_of(fun: types.FunctionType) -> Iterator[tuple[str, object]]:
    """The code, the defaults, and each value that the code reads, by name."""
    yield "code", _code_facts(fun.__code__)
    yield "defaults", (fun.__defaults__, fun.__kwdefaults__)
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            yield name, None
    for path in dict.fromkeys(_reads(fun.__code__)):
        value = _resolved(path, fun.__globals__)
        if value is not _MISSING:
            yield ".".join(path), value
    imports = tuple(dict.fromkeys(_imports(fun.__code__)))
    if imports:
        package = str(fun.__globals__.get("__package__") or "")
        yield "imports", (imports, sources_of(imports, package))
        yield "values there", _values_there(fun.__code__, named(imports, package))


def _values_there(code: types.CodeType, modules: Iterable[str]) -> dict[str, object]:
    """Plain values of the user's own modules that the code names: a program may have set them."""
    names = {name for each in _codes(code) for name in each.co_names if name[:2] != "__"}
    found = {}
    for module in dict.fromkeys(modules):
        known = {} if package_of(module) else vars(sys.modules.get(module, object))
        for name in sorted(names & known.keys()):
            if _is_plain(known[name]):
                found[f"{module}.{name}"] = known[name]
    return found


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(each) for item in value.items() for each in item)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return type(value) in _LEAVES


def is_installed(fun: types.FunctionType) -> bool:
    """By its name in an installed package; functools.wraps gives that to an own function, too."""
    if not package_of(fun.__module__) or not package_of(str(fun.__globals__.get("__name__"))):
        return False
    if "<" not in fun.__qualname__ and has_named(fun.__module__, fun.__qualname__, fun):
        return True
    return "<" not in fun.__code__.co_qualname


def has_named(module: str, name: str, value: object) -> bool:
    """Whether a module has the value under this name."""
    found: object = sys.modules.get(module)
    for each in name.split("."):
        found = getattr(found, each, _MISSING)
    return found is value


def reads_of(fun: types.FunctionType) -> Reads:
    """What parts_of looks up by names of globals and of the user's own modules."""
    found: Reads = []
    for name, *attributes in dict.fromkeys(_reads(fun.__code__)):
        found.append((fun.__globals__, name))
        value = fun.__globals__.get(name)
        for attribute in attributes:
            if not isinstance(value, types.ModuleType) or package_of(value.__name__):
                break
            found.append((vars(value), attribute))
            value = vars(value).get(attribute)
    return found


def stored_by(fun: types.FunctionType) -> set[str]:
    """Names that it sets itself, of globals or as attributes."""
    steps = (step for each in _codes(fun.__code__) for step in _steps(each))
    return {name for step, name in steps if step in _STORED}


def _code_facts(code: types.CodeType) -> tuple[object, ...]:
    return (
        code.co_code,
        code.co_exceptiontable,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        tuple(_code_facts(c) if isinstance(c, types.CodeType) else c for c in code.co_consts),
    )


@lru_cache(maxsize=1000)
def _steps(code: types.CodeType) -> tuple[tuple[str, Any], ...]:
    return tuple((step.opname, step.argval) for step in dis.get_instructions(code))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _reads(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """Globals that are read, with the attributes read of each at once."""
    for each in _codes(code):
        path: tuple[str, ...] = ()
        for step, name in _steps(each):
            if path and step in _ATTRIBUTE:
                path = (*path, name)
                continue
            if path:
                yield path
            path = (name,) if step in _GLOBAL else ()


def _resolved(path: tuple[str, ...], known: dict[str, object]) -> object:
    """The value of a global, or of what is read of a user's own module or function."""
    name, *attributes = path
    value = known.get(name, _MISSING)
    for attribute in attributes:
        match value:
            case types.ModuleType() if not package_of(value.__name__):
                found = getattr(value, attribute, _MISSING)
            case types.FunctionType() if not package_of(value.__module__):
                found = vars(value).get(attribute, _MISSING)
            case _:
                break
        if found is _MISSING:
            break
        value = found
    return value


def _imports(code: types.CodeType) -> Iterator[Import]:
    """Modules that are imported when the function runs, and what is taken of them."""
    for each in _codes(code):
        constants: list[object] = []
        for step, value in _steps(each):
            if step in _CONSTANT:
                constants.append(value)
            elif step == "IMPORT_NAME":  # after the constants level and names
                level, taken = constants[-2:]
                names = taken if isinstance(taken, tuple) else ()
                yield "." * int(str(level)) + value, names
