"""A program with its own loader and libraries in one folder, so that it is the same everywhere.

An image has other libraries, or none, and the host's are not visible. So the binary is started
through a copy of its loader, which searches its folder only:

    FOLDER/ld.so --library-path FOLDER FOLDER/PROGRAM ...

The same command line starts it bare, so that only the environment differs. Static linking would
not be enough: a BLAS is opened at run time.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.engine import Node
from flowos.model import Argv, MeasureError, Outcome
from flowos.operations._on_node import outcome_of

_LIBRARY = re.compile(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$")
_PT_INTERP = 3
_OPENED_LATER = "libgcc_s.so.1"
"""The C library opens it when a thread ends."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle's folder; `words` start the program, arguments follow."""

    folder: Path
    words: Argv

    def holds(self, file: Path) -> Path:
        """The path in the bundle of a library that was copied into it."""
        return self.folder / file.name


def bundle(node: Node, program: Path, folder: Path, also: Iterable[Path] = ()) -> Bundle:
    """Copy a program of a node, its loader, its libraries and those of `also` (which it opens).

    folder: a new one, which the node and this machine see. A static program is copied alone. Raises
    MeasureError if a library cannot be found.
    """
    folder.mkdir(parents=True)
    opened = tuple(also)
    _copy(node, (program, *opened), folder)
    made = folder / program.name
    loader = loader_of(made)
    if loader is None:
        return Bundle(folder, (str(made),))
    needed: dict[str, Path] = {}
    for file in (program, *opened):
        needed |= _needed(node, loader, file)
    copied = {file.name for file in (program, *opened)}
    _copy(node, [file for name, file in needed.items() if name not in copied], folder)
    if _OPENED_LATER not in copied | needed.keys():
        _copy_what_is_opened_later(node, needed.values(), folder)
    _copy(node, (loader,), folder / "ld.so")
    return Bundle(folder, (str(folder / "ld.so"), "--library-path", str(folder), str(made)))


def loader_of(program: Path) -> Path | None:
    """The loader named in an ELF program; None for a static one. Raises MeasureError for no ELF."""
    content = program.read_bytes()
    if content[:4] != b"\x7fELF" or content[4] != 2:
        raise MeasureError(f"{program} is no 64-bit ELF program")
    order = "<" if content[5] == 1 else ">"
    (table,) = struct.unpack_from(order + "Q", content, 32)
    size, count = struct.unpack_from(order + "HH", content, 54)
    for at in range(table, table + size * count, size):
        kind, _, start, _, _, length = struct.unpack_from(order + "IIQQQQ", content, at)
        if kind == _PT_INTERP:
            return Path(content[start : start + length].rstrip(b"\0").decode())
    return None


def libraries_in(listing: str) -> dict[str, str]:
    """Name -> path (or "not found") of the libraries that a loader lists."""
    found = (_LIBRARY.match(line) for line in listing.splitlines())
    return {m[1]: m[2] for m in found if m}


def _needed(node: Node, loader: Path, file: Path) -> dict[str, Path]:
    outcome = outcome_of(node, str(loader), "--list", str(file))
    if not outcome.ok:
        said = _said(outcome)
        if "statically linked" in said:
            return {}
        raise MeasureError(f"the libraries of {file} cannot be listed: {said}")
    needed = libraries_in(outcome.stdout.decode(errors="replace"))
    for name, path in needed.items():
        if not path.startswith("/"):
            raise MeasureError(f"{file} needs {name}, which is not to be found on {node.name}")
    return {name: Path(path) for name, path in needed.items()}


def _copy_what_is_opened_later(node: Node, needed: Iterable[Path], folder: Path) -> None:
    """From next to what is needed, if it is there."""
    near = dict.fromkeys(file.parent / _OPENED_LATER for file in needed)
    outcome_of(node, "cp", "-L", *map(str, near), str(folder))


def _copy(node: Node, sources: Sequence[Path], to: Path) -> None:
    """What they lead to, as the node sees them."""
    if not sources:
        return
    outcome = outcome_of(node, "cp", "-L", "--", *map(str, sources), str(to))
    if not outcome.ok:
        raise MeasureError(f"{sources[0].name} cannot be copied: {_said(outcome)}")


def _said(outcome: Outcome) -> str:
    """Its first line: what starts it on a node may add more."""
    return (outcome.stderr or outcome.stdout).decode(errors="replace").strip().partition("\n")[0]
