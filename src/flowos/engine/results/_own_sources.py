"""Files of the user's own modules, and of those that they import in turn.

What a module computes is in its file where nothing says which of its functions are used. Nothing is
imported for it: a module need not be loaded yet.
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from flowos.engine.results._packages import package_at, package_of

Import = tuple[str, tuple[str, ...]]
"""A module with a dot for each level, and names that are taken of it."""
_SUFFIXES = (".py", *EXTENSION_SUFFIXES)


def source_of(module: str) -> bytes:
    """The file of a user's own module; its name for any other."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    return Path(file).read_bytes() if file and not package_of(module) else module.encode()


def sources_of(imports: Iterable[Import], package: str = "") -> bytes:
    """A digest of modules and all that they import. package: what dots are relative to."""
    states: dict[str, str] = {}
    waiting = list(named(imports, package))
    while waiting:
        name = waiting.pop()
        if name in states:
            continue
        top, file = name.partition(".")[0], _file_of(name)
        states[name] = package_of(name) or (package_at(top, file) if file else "none")
        if file is None or states[name]:
            continue
        stat = file.stat()
        states[name], further = _read(file, stat.st_mtime_ns, stat.st_size)
        inside = name if file.name == "__init__.py" else name.rpartition(".")[0]
        waiting += named(further, inside)
    known = {name: state for name, state in states.items() if state != "none"}
    return hashlib.sha256(repr(sorted(known.items())).encode()).digest()


def named(imports: Iterable[Import], package: str) -> Iterator[str]:
    """Each module with the packages that it is in; a name that is taken may be one, too."""
    for module, taken in imports:
        try:
            whole = importlib.util.resolve_name(module, package or None)
        except ImportError:  # it fails when the code runs, too
            continue
        for name in (whole, *(f"{whole}.{each}" for each in taken if each != "*")):
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                yield ".".join(parts[:count])


def _file_of(name: str) -> Path | None:
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if loaded:
        return Path(loaded)
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not inner:
        return Path(spec.origin) if spec.has_location and spec.origin else None
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *inner)
        for file in (place / "__init__.py", *(place.with_name(place.name + s) for s in _SUFFIXES)):
            if file.is_file():
                return file
    return None


@lru_cache(maxsize=10_000)
def _read(file: Path, _stamp: int, _size: int) -> tuple[str, tuple[Import, ...]]:
    """The digest of a file of this state, and what stands in it to be imported."""
    content = file.read_bytes()
    further: list[Import] = []
    if file.suffix == ".py":
        try:
            tree = ast.parse(content)
        except (SyntaxError, ValueError):  # it fails when it is imported, too
            tree = ast.Module([], [])
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                further += [(each.name, ()) for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                taken = tuple(each.name for each in node.names)
                further.append(("." * node.level + (node.module or ""), taken))
    return hashlib.sha256(content).hexdigest(), tuple(further)
