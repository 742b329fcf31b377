"""Files and folders by name, among thousands: only those with the right names become paths.

Standard library only, Python 3.8 or newer: collect_software.py imports it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path


def files_in(folders: list[str], is_right: Callable[[str], object]) -> list[Path]:
    """The files of these folders with the right names, each folder once, in order."""
    found: list[Path] = []
    for folder in dict.fromkeys(folders):
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if is_right(entry.name))
        except OSError:
            continue
        found += (Path(folder, name) for name in names)
    return found


def folders_like(patterns: tuple[str, ...], root: str = "/") -> list[str]:
    """What is there of each pattern, the newest version first as far as names tell it."""
    start = glob.escape(root).rstrip("/")
    there = (glob.glob(f"{start}/{each}") for each in patterns)  # noqa: PTH207 - far faster
    return [path for found in there for path in sorted(found, key=_parts, reverse=True)]


def _parts(path: str) -> list[str]:
    return path.split("/")


def real(path: Path) -> str:
    return os.path.realpath(path)
