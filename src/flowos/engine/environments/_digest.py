"""The identity of an image: sha256 of a file, or of a folder's sorted tree.

Reading hundreds of megabytes at each start would cost more than the start. So a digest is kept with
the stat identity of what was read (device, inode, mode, size, both times of change; ctime cannot be
set back by a program), and read anew when any of that is another.
"""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from flowos._dataclasses import dataclass

_SETTLED_NS = 50_000_000
"""Longer than the kernel's tick: a later change has another time of change."""


@dataclass(frozen=True)
class Identity:
    """`settled`: what changes from now on cannot have the same identity."""

    words: str
    settled: bool


def file_identity(path: Path) -> Identity:
    seen = path.stat()
    return Identity(repr((seen.st_dev, *_numbers(seen))), _is_settled(seen.st_ctime_ns))


def tree_identity(root: Path) -> Identity:
    from hashlib import sha256  # 5 ms: most starts read no folder

    digest = sha256()
    newest = 0
    for path, seen in _walk(root):
        digest.update(os.fsencode(path) + b"\0" + repr(_numbers(seen)).encode())
        newest = max(newest, seen.st_ctime_ns)
    return Identity(digest.hexdigest(), _is_settled(newest))


def file_digest(path: Path) -> str:
    import hashlib

    with path.open("rb", buffering=0) as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(root: Path) -> str:
    """Over each entry in the order of its path: path, mode, size, and content or link."""
    from hashlib import sha256

    digest = sha256()
    for path, seen in _walk(root):
        size = seen.st_size if stat.S_ISREG(seen.st_mode) else 0
        digest.update(os.fsencode(path) + f"\0{seen.st_mode:o} {size}\0".encode())
        digest.update(_content(root / path, seen.st_mode) + b"\0")
    return "tree-sha256:" + digest.hexdigest()


def _numbers(seen: os.stat_result) -> tuple[int, ...]:
    return seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _is_settled(changed_ns: int) -> bool:
    return time.time_ns() - changed_ns > _SETTLED_NS


def _content(path: Path, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(path.readlink())
    if stat.S_ISREG(mode):
        return bytes.fromhex(file_digest(path).removeprefix("sha256:"))
    return b""


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Relative paths of all below, parents first, siblings in byte order; no link is followed."""
    folders = [""]
    while folders:
        above = folders.pop()
        with os.scandir(root / above) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
        below = []
        for entry in entries:
            path = f"{above}/{entry.name}" if above else entry.name
            seen = entry.stat(follow_symlinks=False)
            yield path, seen
            if stat.S_ISDIR(seen.st_mode):
                below.append(path)
        folders += reversed(below)
