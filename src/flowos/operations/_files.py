"""Paths as they are given; several files written completely, or none."""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from flowos.model import brief_repr


def path_complaint(given: object) -> str:
    """Why this names no file or folder; "" if it can. An empty one would be the current folder."""
    try:
        text = os.fspath(given)  # type: ignore[call-overload]
    except TypeError:
        text = ""
    good = isinstance(text, str) and text and "\0" not in text
    return "" if good else f"expected a path, given {brief_repr(given)}"


def write_together(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write these files (name -> text) into a folder, which is created if it does not exist.

    All are written under temporary names first and then renamed, so that existing files stay as
    they were if one cannot be written. Raises OSError then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = secrets.token_hex(4)
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


def _write_down(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
