"""Temporary folders for work on an image: private, on a disk of this node, removed afterwards.

    /var/tmp/flowos-UID/build/NAME        closed to others
    /var/tmp/flowos-UID/containers        storage of buildah and podman; stays
    /var/tmp/flowos-UID-open/NAME         others may pass, not list: for tools that work under
                                          subordinate user ids, which are others

If $TMPDIR is set, it is used for /var/tmp. NAME is locked while its process lives, so that what a
killed process left is removed by the next one.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flowos.engine import ON_DISK, PASSABLE, here, locked, own_folder, remove_tree
from flowos.model import EnvironmentRefused
from flowos.report import number

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_ENDING_SECONDS = 30.0


@contextmanager
def scratch(*, others_pass: bool = False) -> Iterator[Path]:
    """A new folder. Raises EnvironmentRefused if there is no safe or writable place for one."""
    base = own_folder(_disk(), mode=PASSABLE) if others_pass else own_folder(_disk(), "build")
    try:
        with locked(base, _FOLDER):
            _remove_left(base)
            folder = Path(tempfile.mkdtemp(dir=base))
            lock = os.open(folder, _FOLDER | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if others_pass:
                folder.chmod(PASSABLE)
    except OSError as error:
        raise EnvironmentRefused(f"cannot work in {base}: {error.strerror}") from error
    try:
        yield folder
    finally:
        remove_tree(folder)
        os.close(lock)


@contextmanager
def builders_storage() -> Iterator[Path]:
    """The storage of the build tools, locked: a second build waits for the first.

    It also waits for a build whose flowos was killed: the lock is free at once, but the build tool
    runs on for seconds.
    """
    place = own_folder(_disk(), "containers")
    with locked(place, _FOLDER):
        here().await_unused(place, _ENDING_SECONDS)
        yield place


def check_room(at: Path, need_bytes: int, what: str) -> None:
    """Raises EnvironmentRefused if the disk of `at` has less free space."""
    free = shutil.disk_usage(at).free
    if free < need_bytes:
        raise EnvironmentRefused(
            f"{what} needs about {number(need_bytes, 'byte')} in {at}, where "
            f"{number(free, 'byte')} are free: make room, or name another "
            "place (TMPDIR for work, XDG_DATA_HOME for images)"
        )


def why(error: OSError, at: Path) -> str:
    """One line on a failed write or read."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full_disk(at)
    named = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else at
    return f"{named}: {error.strerror}"


def full_disk(at: Path) -> str:
    return (
        f"the disk of {at} is full: make room, or name another place (TMPDIR for work, "
        "XDG_DATA_HOME for images)"
    )


def _disk() -> Path:
    return Path(os.environ.get("TMPDIR") or ON_DISK)


def _remove_left(base: Path) -> None:
    """Remove folders whose process is gone: their lock is free."""
    for folder in base.iterdir():
        with suppress(OSError), locked(folder, _FOLDER, wait=False):
            remove_tree(folder)
