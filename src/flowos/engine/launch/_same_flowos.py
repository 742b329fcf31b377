"""Whether the FlowOS elsewhere is this one: a node may have another one under the same path.

Standard library only: a worker, which may have no FlowOS, gets this file as code. It looks at the
sizes of what tasks load of FlowOS, once and within milliseconds. Versions in the making have one
number; to read the files takes ten times as long, and 245 of 250 changes to them change a size.
"""

import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

Sizes = dict[str, int]
"""Of Python files by their names in a FlowOS, bytes."""
Unlike = tuple[str, str]
"""The version of another FlowOS, and the first file that is another one there."""

_LOADED = (
    "",
    "model",
    "engine",
    "engine/bodies",
    "engine/flow",
    "engine/workers",
    "feeder",
    "kernels",
    "solver",
)
"""Folders from which tasks load something."""


@cache
def sizes_here(*more: str) -> Sizes:
    """Of what tasks load of this FlowOS, and of what lies in more folders.

    Not of all of it: what is changed meanwhile and runs nowhere else is to end no program.
    """
    return _sizes(_home(), (*_LOADED, *more))


def unlike(ours: Sizes) -> Unlike | None:
    """How the FlowOS that is found here differs from one with these sizes. None if it does not, or
    none is found: then functions do without."""
    spec = None if "flowos" in sys.modules else find_spec("flowos")
    file = spec.origin if spec else getattr(sys.modules.get("flowos"), "__file__", None)
    if file is None:
        return None
    theirs = _sizes(os.path.dirname(file), {name.rpartition("/")[0] for name in ours})  # noqa: PTH120
    others = (name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))
    first = min(others, default="")
    return (_version(), first) if first else None


def unlike_words(there: Unlike) -> str:
    """Which FlowOS it is, and which is ours."""
    (theirs, file), ours = there, _version()
    same = f", and {file} is another file" if theirs == ours else ""
    return f"FlowOS {theirs}, this is FlowOS {ours}{same}"


def mend_words(there: Unlike, ours: Sizes) -> str:
    """What to do where the nodes see our files. ours: that it is unlike."""
    home, file = _home(), there[1]
    now = _sizes(home, {file.rpartition("/")[0]})
    if now.get(file) != ours.get(file):
        return f"{home} has changed since this program began: start it again"
    return f"{home} has to be the same folder on both sides"


def _home() -> str:
    return os.path.dirname(str(import_module("flowos").__file__))  # noqa: PTH120


def _version() -> str:
    try:
        return str(import_module("flowos").__version__)
    except Exception:  # whatever it is
        return "without a version"


def _sizes(home: str, folders: Iterable[str]) -> Sizes:
    sizes = {}
    for folder in folders:
        start = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{home}/{folder}") as entries:
                files = [(e.name, e.stat().st_size) for e in entries if _is_module(e.name)]
        except OSError:
            continue
        sizes.update({start + name: size for name, size in files})
    return sizes


def _is_module(name: str) -> bool:
    """Not what editors and file systems keep next to one, as `.#a.py`, which is a broken link."""
    return name.endswith(".py") and not name.startswith(".")
