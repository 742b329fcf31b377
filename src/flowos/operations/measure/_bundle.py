"""A program with its own loader and libraries in one folder, so that it is the same everywhere.

An image has other libraries, or none, and the host's are not visible. So the binary is started
through a copy of its loader, which searches its folder only:

    FOLDER/ld.so --library-path FOLDER FOLDER/PROGRAM ...

The same command line starts it bare, so that only the environment differs. Static linking would
not be enough: a BLAS is opened at run time.
"""

import re
import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from flowos import engine
from flowos.model import BARE, Argv, Launch, MeasureError

_LIMIT_SECONDS = 20.0
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


def bundle(program: Path, folder: Path, also: Iterable[Path] = ()) -> Bundle:
    """Copy a program, its loader, its libraries and those of `also` (which it opens) to a folder.

    A static program is copied alone. Raises MeasureError if a library cannot be found.
    """
    folder.mkdir(parents=True)
    made = folder / program.name
    shutil.copy2(program, made)
    loader = loader_of(program)
    if loader is None:
        return Bundle(folder, (str(made),))
    opened = tuple(also)
    for file in opened:
        shutil.copy2(file, folder / file.name)
    needed: dict[str, Path] = {}
    for file in (program, *opened):
        needed |= _needed(loader, file)
    for name, file in needed.items():
        if not (folder / name).exists():
            shutil.copy2(file, folder / name)
    _add_what_is_opened_later(folder, needed)
    shutil.copy2(loader, folder / "ld.so")
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


def _needed(loader: Path, file: Path) -> dict[str, Path]:
    outcome = engine.here().run(
        Launch(
            argv=(str(loader), "--list", str(file)),
            variables=engine.here().variables(BARE),
            limit_seconds=_LIMIT_SECONDS,
        )
    )
    if not outcome.ok:
        said = (outcome.stderr or outcome.stdout).decode(errors="replace").strip()
        if "statically linked" in said:
            return {}
        raise MeasureError(f"the libraries of {file} cannot be listed: {said}")
    needed = libraries_in(outcome.stdout.decode(errors="replace"))
    for name, path in needed.items():
        if not path.startswith("/"):
            raise MeasureError(f"{file} needs {name}, which is not to be found here")
    return {name: Path(path) for name, path in needed.items()}


def _add_what_is_opened_later(folder: Path, needed: dict[str, Path]) -> None:
    for near in {file.parent for file in needed.values()}:
        if (near / _OPENED_LATER).exists() and not (folder / _OPENED_LATER).exists():
            shutil.copy2(near / _OPENED_LATER, folder / _OPENED_LATER)
