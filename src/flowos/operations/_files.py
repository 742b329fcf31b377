"""Paths as they are given; several files written completely, or none."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from flowos.model import brief_repr


def path_complaint(given: object) -> str:
    """Why this names no file or folder; "" if it can. An empty one would be the current folder."""
    try:
        text = os.fspath(given)  # type: ignore[call-overload]
    except TypeError:
        text = ""
    good = isinstance(text, str) and text and "\0" not in text
    return "" if good else f"expected a path, given {brief_repr(given)}"


def check_folder(folder: Path) -> None:
    """Raises OSError if no file can be written into this folder, which may lack; leaves none."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    tempfile.TemporaryDirectory(prefix=".flowos-", dir=there).cleanup()


def write_together(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write these files (name -> text) into a folder, which is created if it does not exist.

    All are written under temporary names first and then renamed, so that existing files stay as
    they were. Raises OSError if one cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = os.urandom(4).hex()
    aside = {folder / f".{name}.{mark}": folder / name for name in texts}
    try:
        for file, text in zip(aside, texts.values(), strict=True):
            _write_down(file, text)
        for file, place in aside.items():
            file.replace(place)
    finally:
        for file in aside:
            with suppress(OSError):
                file.unlink()
    return tuple(aside.values())


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes this path once it is written completely. Raises OSError if that fails.

    A device or pipe is not replaced but written to; a link stays one.
    """
    special = path.exists() and not path.is_file()
    target = path if special else path.resolve()
    part = target if special else target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(target)
    finally:
        if not special:
            with suppress(OSError):
                part.unlink()


def put_folder(new: Path, at: Path) -> None:
    """A folder that is complete takes this path; what was there goes next to it as `before`.

    Between two renamings there is none: file systems of networks exchange no folders.
    """
    if at.exists():
        at.rename(new.with_name("before"))
    new.rename(at)


def _write_down(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
