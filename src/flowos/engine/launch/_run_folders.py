"""A fresh folder for each launch, under one folder for this process's launches on a node.

    /tmp/flowos-UID/SESSION/NUMBER

/tmp, because every rank and every container of ours sees it under this name, and because the path
of a unix socket in it must fit in 108 bytes. SESSION is locked (flock) while its process lives:
by the lock folders of dead processes are known, those of other pid namespaces too, and
systemd-tmpfiles keeps away.

What ranks of a gang share lies in /dev/shm/flowos-UID-SESSION-NUMBER, and goes with its run folder.
"""

import atexit
import errno
import fcntl
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from flowos._collected import when_collected
from flowos._dataclasses import dataclass
from flowos.engine.launch._private_dirs import complaint_about, in_spite_of_removals, locked
from flowos.engine.launch._stale_sessions import is_beyond_us, remove_session
from flowos.model import CpuTimes, Launch, LaunchFailed, Usage

_HALF_MADE_SECONDS = 3600.0
_NAME_BYTES = 5
"""Random bytes: more names than are ever used up, and short enough for a socket's path."""
_LOOKS, _BETWEEN_LOOKS_SECONDS = 3, 0.02
_PAUSES_SECONDS = (0.02, 0.1, 0.5, 1.0, 1.5, 0.0)
_GOES_BY = {errno.ENOTEMPTY, errno.EBUSY, errno.ENOENT}
_MEMORY = Path("/dev/shm")
_Count = TypeVar("_Count", int, float)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


@dataclass(frozen=True)
class _Session:
    folder: Path
    lock: int
    numbers: Iterator[int]


class RunFolders:
    """The folders of one node's launches. That which they lie in is made when it is first needed.

    It is removed when this process ends, when this object is no longer referenced, or at the next
    start of another process. base: makes the folder of all processes of this user and machine, for
    launches `elsewhere`, whose answers may come a little later than their end. lost: none comes any
    more, their node is gone. used: by the launches that have ended, times added up. seen: the same
    of those that say what their node did meanwhile. lost_image: the name of a node of
    this launch on which its image was not shown all the time since then; "" for none.
    """

    def __init__(self, base: Callable[[], Path] | None = None) -> None:
        self.elsewhere = base is not None
        self.lost = False
        self.lost_image: Callable[[Launch, float], str] = _none_lost
        self.used = self.seen = Usage()
        self._using = threading.Lock()
        self._base = base or _base
        self._begin()
        _open.add(self)

    def use(self, usage: Usage) -> None:
        """A launch has ended."""
        with self._using:
            self.used = _sum(self.used, usage)
            if usage.cpus is not None:
                self.seen = _sum(self.seen, usage)

    def session(self) -> Path:
        """What they lie in."""
        return self._own().folder

    def make(self) -> Path:
        """A fresh one."""
        folder = self.new_name()
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            why = error.strerror
            raise LaunchFailed(f"cannot make the run folder {folder}: {why}") from error
        return folder

    def new_name(self) -> Path:
        """Of one that is not there yet."""
        session = self._own()
        return session.folder / str(next(session.numbers))

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._session: _Session | None = None

    def _own(self) -> _Session:
        with self._guard:
            if self._session is None:
                try:
                    self._session = in_spite_of_removals(lambda: _begun_in(self._base()))
                except OSError as error:
                    raise LaunchFailed(f"cannot make a run folder: {error}") from error
                self._ending = when_collected(self, partial(_remove_session, self._session))
                self._ending.atexit = False  # `_remove_all` comes once all launches have ended
            return self._session

    def remove(self) -> None:
        """None of their launches runs any more. Twice is once."""
        if self._session is not None and self._ending.detach():
            _remove_session(self._session)
            self._session = None

    def _forget_in_child(self) -> None:
        """After fork() the folder stays the parent's; the child makes its own when it needs one."""
        if self._session is not None:
            self._ending.detach()
            os.close(self._session.lock)
        self._begin()


def _none_lost(launch: Launch, since: float) -> str:  # noqa: ARG001
    return ""


def _sum(one: Usage, other: Usage) -> Usage:
    of, more = one.cpus or CpuTimes(), other.cpus or CpuTimes()
    cpus = CpuTimes(busy=of.busy + more.busy, idle=of.idle + more.idle, steal=of.steal + more.steal)
    return Usage(
        wall_seconds=one.wall_seconds + other.wall_seconds,
        user_seconds=one.user_seconds + other.user_seconds,
        system_seconds=one.system_seconds + other.system_seconds,
        max_rss_bytes=max(one.max_rss_bytes, other.max_rss_bytes),
        cpus=cpus if one.cpus or other.cpus else None,
        memory_stalled_seconds=_both(one.memory_stalled_seconds, other.memory_stalled_seconds),
        io_stalled_seconds=_both(one.io_stalled_seconds, other.io_stalled_seconds),
        disk_bytes=_both(one.disk_bytes, other.disk_bytes),
        own_disk_bytes=_both(one.own_disk_bytes, other.own_disk_bytes),
    )


def _both(one: _Count | None, other: _Count | None) -> _Count | None:
    """None if neither is counted."""
    return other if one is None else one if other is None else one + other


def make_memory_folder(folder: Path) -> Path:
    """A folder in shared memory for this run folder; the latter itself where there is none."""
    made = _memory_folder(folder)
    try:
        made.mkdir(mode=0o700)
    except OSError:
        return folder
    return made


def _memory_folder(folder: Path) -> Path:
    return _MEMORY / f"flowos-{os.geteuid()}-{folder.parent.name}-{folder.name}"


def remove_run_folder(folder: Path) -> None:
    _remove_folder(_memory_folder(folder))
    with suppress(OSError):  # it holds a folder
        for path in folder.iterdir():
            path.unlink()
    _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    """If it is there. Most are empty or hold little, and shutil takes 3 ms to be imported."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError:
        try:
            _remove_below(folder)
        except OSError:  # what its owner may not write, or comes or goes meanwhile
            _remove_stubborn(folder)


def _remove_stubborn(folder: Path) -> None:
    """All but what its owner may not remove.

    A process that ends meanwhile may add a file, and on NFS and FUSE a removed file that is open
    stays as a hidden one until it is closed: such are waited for.
    """
    for pause in _PAUSES_SECONDS:
        refused = _refused_removals(folder)
        if not folder.exists() or refused - _GOES_BY:
            return
        time.sleep(pause)


def _refused_removals(folder: Path) -> set[int | None]:
    """Remove what can be; the errors of the rest."""
    import shutil

    errors: list[BaseException] = []
    with suppress(OSError):  # rmtree passes no error of fstat on, as FUSE gives
        shutil.rmtree(folder, onerror=lambda _, __, error: errors.append(error[1]))
    return {e.errno if isinstance(e, OSError) else None for e in errors}


def _remove_below(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_below(Path(entry))
            else:
                Path(entry).unlink()
    folder.rmdir()


def _begun_in(base: Path) -> _Session:
    remove_leftovers(base)
    return _new_session(base)


def _new_session(base: Path) -> _Session:
    """Locked before it gets a name under which others could take it for a leftover."""
    hidden = base / f".{os.urandom(_NAME_BYTES).hex()}"
    hidden.mkdir(mode=0o700)
    lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return _Session(hidden.rename(base / hidden.name.lstrip(".")), lock, itertools.count())


def _base() -> Path:
    """A folder that is ours alone. In /tmp anyone may have made one of this name before us."""
    places = [Path("/tmp") / f"flowos-{os.geteuid()}"]
    if runtime_folder := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(runtime_folder) / "flowos")
    complaints = []
    for place in places:
        complaint = complaint_about(place)
        if not complaint:
            return place
        complaints.append(f"{place} {complaint}")
    raise LaunchFailed(f"no safe place for run folders: {'; '.join(complaints)}")


def remove_leftovers(base: Path) -> None:
    """Remove the folders of sessions whose process is gone, and what still runs of them."""
    for folder in base.iterdir():
        with suppress(OSError):  # it is in use, was removed meanwhile, or is none
            if not _is_being_made(folder):
                with locked(folder, _FOLDER, wait=False):
                    _remove_left(folder)


def left_alone(session: Path) -> tuple[Path, ...]:
    """Other sessions whose process is gone, and that cannot be judged from here.

    See _stale_sessions.
    """
    return tuple(sorted(filter(_is_left, session.parent.iterdir())))


def _is_being_made(folder: Path) -> bool:
    return (
        folder.name.startswith(".") and time.time() - folder.lstat().st_mtime < _HALF_MADE_SECONDS
    )


def _is_left(folder: Path) -> bool:
    """A live process holds its lock at each look; a starting one holds others' for a moment."""
    for _ in range(_LOOKS):
        with suppress(OSError), locked(folder, _FOLDER, wait=False):
            return not folder.name.startswith(".")
        time.sleep(_BETWEEN_LOOKS_SECONDS)
    return False


def _remove_left(folder: Path) -> None:
    if not is_beyond_us(folder):
        for of_launch in folder.iterdir():
            _remove_folder(_memory_folder(of_launch))
        remove_session(folder)


def _remove_session(session: _Session) -> None:
    with suppress(OSError):  # one that is shared may be gone
        for of_launch in session.folder.iterdir():
            _remove_folder(_memory_folder(of_launch))
    _remove_folder(session.folder)
    os.close(session.lock)


# The kernel forks and ends processes, not nodes: its hooks act on all nodes listed here.
_open: "weakref.WeakSet[RunFolders]" = weakref.WeakSet()


def _remove_all() -> None:
    for folders in tuple(_open):
        folders.remove()


def _forget_in_child() -> None:
    for folders in tuple(_open):
        folders._forget_in_child()


atexit.register(_remove_all)
os.register_at_fork(after_in_child=_forget_in_child)
