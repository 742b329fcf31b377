"""What a function computes: its code, and what that reads of its module besides its inputs.

Code is compared by its instructions and constants, so that comments and the place in a file do not
count. Names that the instructions read are followed: functions, classes and values of the user's
own modules, also as attributes of a module (`helpers.f`). Installed packages count by name and
version.
"""

import dis
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path

_MISSING = object()
_PACKAGES = {"site-packages", "dist-packages"}
_STANDARD = {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib")}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_CONSTANT = {"LOAD_CONST", "LOAD_SMALL_INT"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_PROGRAM = {"__main__", "__mp_main__"}  # of a notebook too, whatever file started it
_known: dict[str, str] = {}


def package_of(module: str | None) -> str:
    """Name and version of the installed package that a module is of; "" for a user's own."""
    found = sys.modules.get(module or "")
    if found is None or module is None or module in _PROGRAM:
        return ""
    if module not in _known:
        _known[module] = _package_of(found)
    return _known[module]


def _package_of(module: types.ModuleType) -> str:
    top = module.__name__.partition(".")[0]
    file = getattr(module, "__file__", None)
    if file is None:
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        return "python" if origin in ("built-in", "frozen") else ""
    place = Path(file).resolve()
    if top == "flowos" or not _PACKAGES.isdisjoint(place.parts):
        return f"{top} {getattr(sys.modules.get(top), '__version__', '')}"
    return "python" if any(str(each) in _STANDARD for each in place.parents) else ""


def source_of(module: str) -> bytes:
    """The file of a user's own module; its name for any other. It may not be loaded yet."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    if found is None:
        spec = importlib.util.find_spec(module)
        file = spec.origin if spec is not None and spec.has_location else None
    elif package_of(module):
        file = None
    if not file or not _PACKAGES.isdisjoint(Path(file).parts):
        return module.encode()
    return Path(file).read_bytes()


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
    for name in dict.fromkeys(_imports(fun.__code__, fun.__globals__)):
        try:
            yield f"import {name}", source_of(name)
        except (ImportError, ValueError, OSError):  # it fails when the function runs, too
            yield f"import {name}", None


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


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _reads(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """Globals that are read, with the attributes read of each at once."""
    for each in _codes(code):
        path: tuple[str, ...] = ()
        for step in dis.get_instructions(each):
            if path and step.opname in _ATTRIBUTE:
                path = (*path, step.argval)
                continue
            if path:
                yield path
            path = (step.argval,) if step.opname in _GLOBAL else ()


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


def _imports(code: types.CodeType, known: dict[str, object]) -> Iterator[str]:
    """Modules that are imported when the function runs."""
    package = str(known.get("__package__") or "")
    for each in _codes(code):
        levels: list[object] = []
        for step in dis.get_instructions(each):
            if step.opname in _CONSTANT:
                levels.append(step.argval)
            elif step.opname == "IMPORT_NAME":  # after the constants level and names
                dots = "." * int(str(levels[-2]))
                yield importlib.util.resolve_name(dots + step.argval, package or None)
