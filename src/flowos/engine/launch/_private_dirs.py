"""Folders that are ours alone, in places where anyone may write: made, locked, removed whole."""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from flowos.engine._ask import ask
from flowos.model import EnvironmentRefused

CLOSED, PASSABLE = 0o700, 0o711
ON_DISK = Path("/var/tmp")
"""On a disk of this node, which outlives a restart; /tmp may be small, or in memory."""

_REMOVE_SECONDS = 600.0
_REMOVALS = 100  # at once, before it is said that there is no such folder
_Made = TypeVar("_Made")


def own_folder(at: Path, name: str = "", *, mode: int = CLOSED) -> Path:
    """AT/flowos-UID/NAME, made if it is not there; where others may pass it is flowos-UID-open.

    Raises EnvironmentRefused if the folder is not safe.
    """
    top = at / (f"flowos-{os.geteuid()}" + "-open" * (mode == PASSABLE))
    for folder in (top, top / name):
        if complaint := complaint_about(folder, mode):
            raise EnvironmentRefused(f"cannot work in {folder}: it {complaint}")
    return top / name


def complaint_about(place: Path, mode: int = CLOSED) -> str:
    """Why this folder, made if it is not there, is no safe base; '' if it is.

    Anyone may have made one of this name before us.
    """
    try:
        place.mkdir(mode=mode, exist_ok=True)
        seen = place.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return "belongs to another user; have it removed"
        has = stat.S_IMODE(seen.st_mode) & 0o777
        if has & ~mode:
            return f"is open to others; mend: chmod {mode:o}, after a look at what is in it"
        if has != mode:  # the umask took what others must have
            place.chmod(mode)
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    return ""


def in_spite_of_removals(act: Callable[[], _Made]) -> _Made:
    """What it returns. Other programs of this user remove the folder that it makes and writes to,
    and the one above, when they are empty: then it is called again.
    """
    for _ in range(_REMOVALS):
        with suppress(FileNotFoundError, FileExistsError):  # or it is gone by then
            return act()
    return act()


@contextmanager
def locked(path: Path, flags: int, *, wait: bool = True) -> Iterator[int]:
    """Hold its lock; yields the descriptor. Raises OSError if it is taken and `wait` is False."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield fd
    finally:
        os.close(fd)


def remove_tree(root: Path) -> None:
    """Also what its owner may not write, or belongs to our subordinate ids; the rest stays."""
    import shutil  # slow to import, and a launch that ends well needs none

    with suppress(OSError):
        open_folders(root)
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        argv = ["unshare", "--map-root-user", "--map-auto", "rm", "-rf", "--", str(root)]
        with suppress(OSError):
            ask(argv, seconds=_REMOVE_SECONDS, cwd="/")


def open_folders(root: Path) -> None:
    """Let us look and write into every folder: images have some that only root may."""
    _open_folder(root)
    for above, folders, _ in os.walk(root):
        for name in folders:
            with suppress(OSError):  # another user's
                _open_folder(Path(above, name))


def _open_folder(folder: Path) -> None:
    mode = folder.lstat().st_mode
    if stat.S_ISDIR(mode) and mode & CLOSED != CLOSED:
        folder.chmod(stat.S_IMODE(mode) | CLOSED)
