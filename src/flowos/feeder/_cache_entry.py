"""Where in a cache folder a source has its place: CACHE/KEY, with what is known of the source.

source     one line: the source as a person wrote it
catalog    what there is in it, and how it looked when it was listed
lock       held while a process lists, so that the others of the node wait for what it finds
samples/   the native cache: samples, shared by all processes of the node
"""

import errno
import fcntl
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.feeder._paths import absolute, check_path
from flowos.model import FeedError, brief_repr

OURS = frozenset({"source", "catalog", "lock"})
SAMPLES = "samples"

_KEY = re.compile("[0-9a-f]{32}")

_listing = threading.Lock()
"""Locks of files are between processes; this one is between threads."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A source's place in a cache folder. It need not be there."""

    folder: Path

    @property
    def samples(self) -> Path:
        return self.folder / SAMPLES

    @property
    def catalog(self) -> Path:
        return self.folder / "catalog"

    def mark_of_catalog(self) -> tuple[int, int]:
        """Another one when it has been written anew."""
        with suppress(OSError):
            state = self.catalog.stat()
            return state.st_ino, state.st_mtime_ns
        return 0, 0

    def source(self) -> str:
        """The source as a person wrote it; empty: this is no place of ours."""
        try:
            words = read_file(self.folder / "source")
        except OSError:
            return ""
        return words.decode(errors="surrogateescape").rstrip("\n")

    def is_ours(self) -> bool:
        """Whether it is one, perhaps one whose source is no longer known, or another user's."""
        named_so = _KEY.fullmatch(self.folder.name) is not None
        if named_so and self.other_user() is not None:
            return True
        return bool(self.source()) or (named_so and _is_folder(self.samples))

    def other_user(self) -> int | None:
        """The number of the user whose it is, where that is another one than ours."""
        with suppress(OSError):
            owner = self.folder.stat().st_uid
            return owner if owner != os.geteuid() else None
        return None

    def disk_bytes(self) -> int:
        """What the files of its samples take on the disk."""
        total = 0
        with suppress(OSError):
            for file in os.scandir(self.samples):
                with suppress(OSError):
                    total += file.stat(follow_symlinks=False).st_blocks * 512
        return total

    def used(self) -> float:
        """When a process last began or ended to use its samples, seconds since 1970; 0: never."""
        with suppress(OSError):
            return (self.samples / "slots").stat().st_mtime
        return 0.0

    def make(self, source: str) -> None:
        """Raises FeedError if nothing can be cached there."""
        cache = self.folder.parent
        if self.folder.is_symlink():
            raise FeedError(f"cache folder {self.folder} is a link, and not used: remove it")
        try:
            with suppress(FileExistsError):  # no folder: what comes next says so
                cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as why:
            raise FeedError(f"cache folder {cache} cannot be made: {why.strerror}") from why
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if self.source() != source:
                write_whole(self.folder / "source", f"{source}\n".encode(errors="surrogateescape"))
        except OSError as why:
            raise FeedError(f"cache folder {self.folder}: {why.strerror}") from why

    def make_room(self) -> bool:
        """Removes what was not used for longest of the other sources; False: there is none."""
        from flowos._native import Cache

        return Cache.evict_oldest(str(self.folder.parent), str(self.samples)) > 0

    def forget_if_empty(self) -> None:
        """Removes the entry again if it is empty: after a listing that failed."""
        with self.locked(), suppress(OSError):
            if self.samples.exists() or self.catalog.exists():
                return
            for name in OURS:
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()

    def forget_if_bare(self) -> None:
        """Removes the folder again if there is nothing in it."""
        with suppress(OSError):
            self.folder.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Until the end of the `with` no other process lists; where nothing can be locked, it may.

        A lock of the process, not of the open file: a child that was forked meanwhile has no part
        in it, and it ends with the process, whatever ends that.
        """
        with _listing:
            try:
                file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                yield
                return
            try:
                with suppress(OSError):
                    fcntl.lockf(file, fcntl.LOCK_EX)
                yield
            finally:
                os.close(file)


def cache_folder(given: object) -> Path:
    """As the user wrote it; `~` is their home. Raises FeedError if it is no path."""
    word = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    if not word or not isinstance(word, str):
        raise FeedError(f"Feed: cache={brief_repr(given)}; expected the path of a folder")
    if "://" in word:
        raise FeedError(f"Feed: cache={brief_repr(given)} is a URL; expected a folder of this node")
    check_path(word)
    return absolute(os.path.expanduser(word))  # noqa: PTH111 - which never fails


def cache_entries(cache: Path) -> tuple[CacheEntry, ...]:
    """All entries of the cache, but for links: what those lead to is of another cache.

    Raises FeedError if the folder cannot be listed.
    """
    try:
        found = [CacheEntry(path) for path in sorted(cache.iterdir()) if _is_folder(path)]
    except OSError as why:
        raise FeedError(f"cache folder {cache}: {why.strerror}") from why
    return tuple(entry for entry in found if entry.is_ours())


def _is_folder(path: Path) -> bool:
    """Not a link to one, nor one that cannot be seen."""
    with suppress(OSError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def read_file(file: Path) -> bytes:
    """Raises OSError if it is none; for a pipe's other end it does not wait."""
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as opened:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "no file", str(file))
        return opened.read()


def write_whole(file: Path, data: bytes) -> None:
    """All of it or nothing, whatever ends us."""
    part = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(data)
        part.rename(file)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
