"""A fresh folder for each launch, under one folder for this process.

    /tmp/flowos-UID/SESSION/NUMBER

/tmp, because every rank and every container of ours sees it under this name, and because the path
of a unix socket in it must fit in 108 bytes. SESSION is locked (flock) while its process lives:
the lock tells the folders of the dead from those of the living, in other pid namespaces too, and
keeps systemd-tmpfiles away.

What ranks of a gang share lies in /dev/shm/flowos-UID-SESSION-NUMBER, and goes with its run folder.
"""

import atexit
import fcntl
import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from flowos.engine.launch._private_dirs import complaint_about, locked
from flowos.engine.launch._stale_sessions import is_beyond_us, remove_session
from flowos.model import LaunchFailed

_HALF_MADE_SECONDS = 3600.0
_NAME_BYTES = 5
"""Of chance: as many names as nobody uses up, and short enough for a socket's path."""
_LOOKS, _BETWEEN_LOOKS_SECONDS = 3, 0.02
_MEMORY = Path("/dev/shm")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


@dataclass(frozen=True, slots=True)
class _Session:
    folder: Path
    lock: int
    numbers: Iterator[int] = field(default_factory=itertools.count)


_guard = threading.Lock()
_session: _Session | None = None


def session_folder() -> Path:
    """The folder of this process; removed when it ends, or at the next start of another."""
    return _own_session().folder


def make_run_folder() -> Path:
    session = _own_session()
    folder = session.folder / str(next(session.numbers))
    folder.mkdir(mode=0o700)
    return folder


def make_memory_folder(folder: Path) -> Path:
    """In shared memory, beside this run folder; the latter itself where there is none."""
    made = _memory_folder(folder)
    try:
        made.mkdir(mode=0o700)
    except OSError:
        return folder
    return made


def _memory_folder(folder: Path) -> Path:
    return _MEMORY / f"flowos-{os.geteuid()}-{folder.parent.name}-{folder.name}"


def remove_run_folder(folder: Path) -> None:
    shutil.rmtree(_memory_folder(folder), ignore_errors=True)
    try:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    except OSError:  # somebody made a folder in it
        shutil.rmtree(folder, ignore_errors=True)


def _own_session() -> _Session:
    global _session
    with _guard:
        if _session is None:
            try:
                base = _base()
                remove_leftovers(base)
                _session = _new_session(base)
            except OSError as error:
                raise LaunchFailed(f"cannot make a run folder: {error}") from error
        return _session


def _new_session(base: Path) -> _Session:
    """Locked before it gets a name under which others could take it for a leftover."""
    hidden = base / f".{os.urandom(_NAME_BYTES).hex()}"
    hidden.mkdir(mode=0o700)
    lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return _Session(hidden.rename(base / hidden.name.lstrip(".")), lock)


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


def left_alone() -> tuple[Path, ...]:
    """Sessions whose process is gone, and that cannot be judged from here (see _stale_sessions)."""
    return tuple(sorted(filter(_is_left, session_folder().parent.iterdir())))


def _is_being_made(folder: Path) -> bool:
    return (
        folder.name.startswith(".") and time.time() - folder.lstat().st_mtime < _HALF_MADE_SECONDS
    )


def _is_left(folder: Path) -> bool:
    """Whoever lives holds its lock at each look; who starts now holds others' for a moment only."""
    for _ in range(_LOOKS):
        with suppress(OSError), locked(folder, _FOLDER, wait=False):
            return not folder.name.startswith(".")
        time.sleep(_BETWEEN_LOOKS_SECONDS)
    return False


def _remove_left(folder: Path) -> None:
    if not is_beyond_us(folder):
        for of_launch in folder.iterdir():
            shutil.rmtree(_memory_folder(of_launch), ignore_errors=True)
        remove_session(folder)


def _close() -> None:
    global _session
    if _session is not None:
        for of_launch in _session.folder.iterdir():
            shutil.rmtree(_memory_folder(of_launch), ignore_errors=True)
        shutil.rmtree(_session.folder, ignore_errors=True)
        os.close(_session.lock)
        _session = None


def _forget_in_child() -> None:
    """After fork() the folder stays the parent's; the child makes its own when it needs one."""
    global _guard, _session
    _guard = threading.Lock()
    if _session is not None:
        os.close(_session.lock)
        _session = None


atexit.register(_close)
os.register_at_fork(after_in_child=_forget_in_child)
