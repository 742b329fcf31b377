"""Digests of files by content, and copies of files.

A file is read once: its digest is remembered with what the file system says of it, unless the file
is so young that a later change might leave that as it is, or lies in memory (tmpfs), where what is
written through a mapping moves no time.
"""

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flowos.engine.results._value_digest import NoDigest

_YOUNG_SECONDS = 2.0
_MAX_KNOWN = 100_000
_AT_ONCE_BYTES = 1 << 24
_known: dict[str, tuple[tuple[int, ...], bytes]] = {}


def file_digest(path: Path) -> bytes:
    """Of a file's content, or of a folder's: the names, contents and links in it, and what links
    that leave it lead to.

    Raises NoDigest for what is neither, OSError for what cannot be read.
    """
    return _digest(path, ())


def _digest(path: Path, above: tuple[str, ...]) -> bytes:
    """above: real paths of the folders that led to it, so that links in a circle end."""
    about = path.stat()
    if stat.S_ISDIR(about.st_mode):
        return _folder_digest(path, above)
    if not stat.S_ISREG(about.st_mode):
        raise NoDigest(f"{path} is no regular file and has no stable digest")
    now = about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
    known = _known.get(str(path))
    if known is not None and known[0] == now:
        return known[1]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    if time.time() - about.st_ctime > _YOUNG_SECONDS and about.st_dev not in _in_memory():
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[str(path)] = now, digest
    return digest


def digest_if_there(path: Path) -> bytes | None:
    """The same; None where nothing is. Raises NoDigest also for what cannot be read."""
    try:
        return file_digest(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoDigest(str(error)) from error


def _in_memory() -> frozenset[int]:
    """Devices of the file systems that are memory."""
    found = set()
    with suppress(OSError), Path("/proc/self/mountinfo").open(errors="replace") as mounts:
        for line in mounts:
            left, _, right = line.partition(" - ")
            if right.startswith(("tmpfs ", "ramfs ")):
                major, _, minor = left.split()[2].partition(":")
                found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)


def _folder_digest(folder: Path, above: tuple[str, ...]) -> bytes:
    found, above = hashlib.sha256(), (*above, os.path.realpath(folder))
    for path in _inside(folder):
        kind, content = _entry(path, above)
        name = os.fsencode(path.relative_to(folder))
        found.update(b"%b%d:%b%d:%b" % (kind, len(name), name, len(content), content))
    return found.digest()


def _entry(path: Path, above: tuple[str, ...]) -> tuple[bytes, bytes]:
    if path.is_symlink():
        return b"link", os.fsencode(path.readlink()) + _linked(path, above)
    return (b"folder", b"") if path.is_dir() else (b"file", _digest(path, above))


def _linked(link: Path, above: tuple[str, ...]) -> bytes:
    """The digest of what a link leads to; b"" of what is in these folders, or not there."""
    real = os.path.realpath(link)
    known = any(os.path.commonpath((real, folder)) in (real, folder) for folder in above)
    return b"" if known or not os.path.exists(real) else _digest(Path(real), above)  # noqa: PTH110


def _inside(folder: Path) -> Iterator[Path]:
    """All that is in a folder, in the order of names."""
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _inside(path)


def copy_file(source: Path, target: Path) -> None:
    """A file or folder with its permissions; the data may be shared by the file system."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, copy_function=_copy_file)
    else:
        _copy_file(str(source), str(target))


def _copy_file(source: str, target: str) -> None:
    # buffered: a raw file that gets no more room writes a part, and does not raise
    with open(source, "rb", 0) as read, open(target, "wb") as written:  # noqa: PTH123 - texts
        with suppress(OSError):  # another file system, or one that cannot
            while os.copy_file_range(read.fileno(), written.fileno(), _AT_ONCE_BYTES):
                pass
        shutil.copyfileobj(read, written, _AT_ONCE_BYTES)
    shutil.copymode(source, target)
