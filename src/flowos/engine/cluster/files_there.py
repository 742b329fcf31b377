"""What a node is asked about files. Standard library only: this runs there, and here."""

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

OTHER = "other"
_YOUNG_SECONDS = 2.0
_SECOND_NS = 10**9


def look_at(path: str) -> str:
    """A file's size and time of change, "|", and its place; of a folder the former of all in it.

    Its place is its inode and when that was changed, which no program can choose: two machines that
    see the same one see one file. "" where that is in whole seconds, as images of a file system
    keep it. "" altogether if it cannot be read; OTHER if it is neither.
    """
    try:
        about = os.stat(path)  # noqa: PTH116 - one call
        if stat.S_ISREG(about.st_mode):
            with open(path, "rb", 0) as file:  # noqa: PTH123 - NFS looks anew when one is opened
                about = os.fstat(file.fileno())
            return f"{_mark(about)}|{_place(about)}"
        return _mark_of_folder(Path(path)) if stat.S_ISDIR(about.st_mode) else OTHER
    except OSError:
        return ""


def mark_of(path: str) -> str:
    """The same without its place, which a copy does not have."""
    return look_at(path).partition("|")[0]


def _mark(about: os.stat_result) -> str:
    return f"{about.st_size} {about.st_mtime_ns}"


def _place(about: os.stat_result) -> str:
    is_fine = about.st_ctime_ns % _SECOND_NS
    return f"{about.st_ino} {about.st_ctime_ns}" if is_fine else ""


def _mark_of_folder(folder: Path) -> str:
    found = hashlib.sha256()
    for entry in _entries(folder):
        found.update(entry)
    return f"folder {found.hexdigest()}"


def _entries(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.iterdir()):
        about = path.lstat()
        name = os.fsencode(path.name)
        if stat.S_ISLNK(about.st_mode):
            yield b"link %b %b\0" % (name, os.fsencode(path.readlink()))
        elif stat.S_ISDIR(about.st_mode):
            yield b"folder %b\0" % name
            yield from _entries(path)
            yield b"end\0"
        else:
            yield b"file %b %b\0" % (name, _mark(about).encode())


def path_of_programs(path: str | None) -> str:
    """Where there is no PATH, this is where programs are looked for."""
    return os.defpath if path is None else path


def files_of(argv: Sequence[str], path: str) -> Iterator[str]:
    """A command's program, found in this PATH, and words that are the absolute path of a file."""
    program = shutil.which(argv[0], path=path) if argv else None
    for word in (*([program] if program else []), *argv):
        if os.path.isabs(word) and os.path.isfile(word):  # noqa: PTH113, PTH117 - texts
            yield word


def digests_of(words: str, path: str) -> str:
    """Of their contents, with spaces between; "!" and why, where one cannot be read.

    words: of the command, with NULs between.
    """
    try:
        return " ".join(map(_digest, files_of(words.split("\0"), path)))
    except OSError as error:
        return f"!{error}"


def digest_of(path: str) -> str:
    """Of a file's content; "" if it cannot be read."""
    try:
        return _digest(path)
    except OSError:
        return ""


def _digest(name: str) -> str:
    """Remembered as in `_file_digest`, which is not there where this runs."""
    with open(name, "rb", 0) as file:  # noqa: PTH123 - as in mark_of
        at = os.fstat(file.fileno())
    state = at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns
    settled = time.time() - at.st_ctime > _YOUNG_SECONDS and not _is_in_memory(at.st_dev)
    return (_known if settled else _known.__wrapped__)(name, state)


@lru_cache(1000)
def _known(name: str, _: tuple[int, ...]) -> str:
    with open(name, "rb") as file:  # noqa: PTH123 - a text
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_in_memory(device: int) -> bool:
    """Where what is written through a mapping moves no time."""
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError), Path("/proc/self/mountinfo").open(errors="replace") as mounts:
        for line in mounts:
            left, _, right = line.partition(" - ")
            if left.split()[2] == number:
                return right.startswith(("tmpfs ", "ramfs "))
    return False


def copy_to(path: str, to: str) -> str:
    """Copy a file or folder, with its times. Why it cannot be, or ""."""
    try:
        if os.path.isdir(path):  # noqa: PTH112 - texts
            shutil.copytree(path, to, symlinks=True)
        else:
            shutil.copy2(path, to)
    except (OSError, shutil.Error) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
