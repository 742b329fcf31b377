"""Files of a flow's outputs that would go with its slice: they are kept in temporary folders."""

import copy
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from flowos.engine import copy_file, here
from flowos.model import PortType, with_files

_FileReplacement = Callable[[Any, str], object]


def keep(
    outputs: dict[str, object], name: str, kind: PortType, *, unpublished: bool = False
) -> str:
    """Has files of an output stay when the slice's folder is removed; where they are, or why they
    are lost, and the output with them.

    unpublished: one that is a file stays wherever it is.
    """
    value, kept = outputs[name], dict[str, Path]()

    def place(file: Any, _: str) -> object:
        path = os.fspath(file)
        if not (_goes(Path(path)) or (unpublished and file is value)):
            return file
        if path not in kept:
            kept[path] = _kept(Path(path))
        return str(kept[path]) if isinstance(file, str) else kept[path]

    try:
        outputs[name] = _with_paths(with_files(kind, value, place), place)
    except OSError as error:
        for each in kept.values():
            shutil.rmtree(each.parent, ignore_errors=True)
        del outputs[name]
        return f"; nor can it be kept in a temporary folder: {error.strerror or error}"
    except RecursionError:  # it contains itself
        return ""
    return f"; it is kept as {', '.join(map(str, kept.values()))}" if kept else ""


def _with_paths(value: Any, place: _FileReplacement) -> Any:
    """With what stands for each path, also in values of any type; itself if all are the same."""
    if isinstance(value, os.PathLike):
        return place(value, "")
    if isinstance(value, dict):
        changed = _changed(value.items(), place)
        return value if not changed else {**value, **changed}
    if is_dataclass(value) and not isinstance(value, type):
        changed = _changed(((f.name, getattr(value, f.name, None)) for f in fields(value)), place)
        value = copy.copy(value) if changed else value
        for name, part in changed.items():
            object.__setattr__(value, name, part)  # frozen ones, too
        return value
    if not isinstance(value, (list, tuple, set, frozenset)):
        return value
    parts = [_with_paths(each, place) for each in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    return getattr(value, "_make", type(value))(parts)


def _changed(parts: Any, place: _FileReplacement) -> dict[Any, Any]:
    found = ((name, each, _with_paths(each, place)) for name, each in parts)
    return {name: new for name, old, new in found if new is not old}


def _goes(path: Path) -> bool:
    """Whether it lies in a folder that is removed with the slice."""
    on_a_cluster = any(part.startswith(".flowos-") for part in path.parts)
    return on_a_cluster or path.is_relative_to(here().folder())


def _kept(made: Path) -> Path:
    """The same file or folder in one that stays. Raises OSError if it cannot be copied."""
    folder = Path(tempfile.mkdtemp(prefix="flowos-"))
    kept, source = folder / made.name, made.resolve()
    try:
        if source.is_dir():
            shutil.copytree(source, kept, symlinks=True, copy_function=_linked)
        else:
            _linked(source, kept)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return kept


def _linked(source: str | Path, target: str | Path) -> None:
    """A second name takes no room on a disk that may be full."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        copy_file(Path(source), Path(target))
