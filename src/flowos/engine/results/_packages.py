"""Whose a module is: the user's own, or of an installed package, which counts by its version."""

import re
import sys
import sysconfig
import types
from functools import cache
from pathlib import Path

_PACKAGES = {"site-packages", "dist-packages"}
_STANDARD = {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib")}
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
    if top == "flowos":
        return f"flowos {getattr(sys.modules.get(top), '__version__', '')}"
    return package_at(top, Path(file))


@cache
def package_at(top: str, file: Path) -> str:
    """The same of a file of a package, which need not be loaded."""
    place = file.resolve()
    names = [number for number, name in enumerate(place.parts[:-1]) if name in _PACKAGES]
    if names:
        return f"{top} {_version(top, Path(*place.parts[: names[-1] + 1]), place)}"
    return "python" if any(str(each) in _STANDARD for each in place.parents) else ""


def _version(top: str, folder: Path, file: Path) -> str:
    """As it was installed; else as the package itself says; else the state of its files."""
    installed = _installed(folder)
    plain = _normal(top)
    if plain in installed:
        return _said_by(installed[plain])
    said = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(said, str):
        return said
    found = [_said_by(each) for each in installed.values() if _has(each, top)]
    return " ".join(sorted(found)) or _state(file, folder / top)


@cache
def _installed(folder: Path) -> dict[str, Path]:
    """What says of each distribution what it is: a folder with its name and version."""
    found = [each for each in folder.iterdir() if each.suffix in (".dist-info", ".egg-info")]
    return {_normal(each.name.partition("-")[0]): each for each in sorted(found)}


def _said_by(installed: Path) -> str:
    for file in (installed / "METADATA", installed / "PKG-INFO", installed):
        try:
            version = re.search(r"^Version: *(\S+)", file.read_text(errors="replace"), re.MULTILINE)
        except OSError:
            continue
        if version is not None:
            return f"{installed.name.partition('-')[0]} {version[1]}"
    return installed.name


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _has(installed: Path, top: str) -> bool:
    """Whether a package, or a module by itself, is of this distribution."""
    for name in ("top_level.txt", "RECORD"):
        try:
            text = (installed / name).read_text(errors="replace")
        except OSError:
            continue
        if re.search(rf"^{re.escape(top)}(/|\.|$)", text, re.MULTILINE):
            return True
    return False


def _state(file: Path, folder: Path) -> str:
    files = sorted(folder.rglob("*.*")) if folder.is_dir() else [file]
    states = [each.stat() for each in files if each.suffix in (".py", ".so")]
    return str([(state.st_size, state.st_mtime_ns) for state in states])
