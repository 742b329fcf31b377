"""Room for work on an image: on a disk of this node, ours alone, gone afterwards.

/var/tmp, as /tmp may be small or in memory. The folder is locked while its process lives, so that
what a killed one left is removed by the next.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flowos.engine._run_folder import complaint_about, remove_leftovers
from flowos.model import EnvironmentRefused
from flowos.report import number


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh folder under $TMPDIR or /var/tmp. EnvironmentRefused: no safe or writable place."""
    base = _base()
    try:
        remove_leftovers(base)
        hidden = Path(tempfile.mkdtemp(prefix=".", dir=base))
        lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise EnvironmentRefused(f"cannot work in {base}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = hidden.rename(base / hidden.name.lstrip("."))
        try:
            yield folder
        finally:
            remove(folder)
    finally:
        os.close(lock)


def remove(folder: Path) -> None:
    """Also what may not be written by its owner, as folders of an unpacked image."""
    for at, names, _ in os.walk(folder):
        for name in names:
            path = Path(at, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def check_room(at: Path, need_bytes: int, what: str) -> None:
    """EnvironmentRefused if there is less room on the disk of `at`."""
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
        return f"the disk of {at} is full ({error.strerror}): make room, or name another place"
    return f"{error.filename or at}: {error.strerror}"


def _base() -> Path:
    home = Path(os.environ.get("TMPDIR") or "/var/tmp")
    place = home / f"flowos-{os.geteuid()}"
    for folder in (place, place / "build"):
        if complaint := complaint_about(folder):
            raise EnvironmentRefused(f"no safe place to work: {folder} {complaint}")
    return place / "build"
