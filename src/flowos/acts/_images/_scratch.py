"""Room for work on an image: on a disk of this node, ours alone, gone afterwards.

    /var/tmp/flowos-UID/build/NAME        closed to others
    /var/tmp/flowos-UID/containers        storage of buildah and podman; stays
    /var/tmp/flowos-UID-open/NAME         others may pass, not list: for tools that work under
                                          subordinate user ids, which are others

/var/tmp (or $TMPDIR), as /tmp may be small or in memory. NAME is locked while its process lives, so
that what a killed one left is removed by the next.
"""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flowos.engine import run
from flowos.model import EnvironmentRefused, Launch, LaunchFailed
from flowos.report import number

_CLOSED, _OPEN = 0o700, 0o711


@contextmanager
def scratch(*, others_pass: bool = False) -> Iterator[Path]:
    """A fresh folder. EnvironmentRefused: there is no safe or writable place."""
    mode = _OPEN if others_pass else _CLOSED
    base = _base(mode)
    try:
        with locked(base, os.O_RDONLY | os.O_DIRECTORY):
            _remove_left(base)
            folder = Path(tempfile.mkdtemp(dir=base))
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder.chmod(mode)
    except OSError as error:
        raise EnvironmentRefused(f"cannot work in {base}: {error.strerror}") from error
    try:
        yield folder
    finally:
        remove(folder)
        os.close(lock)


@contextmanager
def builders_storage() -> Iterator[Path]:
    """The one storage of the programs that build; whoever comes second waits."""
    place = _safe(_home() / "containers", _CLOSED)
    with locked(place, os.O_RDONLY | os.O_DIRECTORY):
        yield place


def remove(folder: Path) -> None:
    """Also what may not be written by its owner, or belongs to our subordinate ids."""
    for at, names, _ in os.walk(folder):
        for name in names:
            below = Path(at, name)
            if not below.is_symlink():
                with suppress(OSError):
                    below.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        argv = ("unshare", "--map-root-user", "--map-auto", "rm", "-rf", "--", str(folder))
        with suppress(LaunchFailed):
            run(Launch(argv=argv, variables=(("PATH", os.environ.get("PATH", os.defpath)),)))


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
        return (
            f"the disk of {at} is full: make room, or name another place (TMPDIR for work, "
            "XDG_DATA_HOME for images)"
        )
    named = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else at
    return f"{named}: {error.strerror}"


def _base(mode: int) -> Path:
    if mode == _OPEN:
        return _safe(_top().with_name(f"{_top().name}-open"), mode)
    return _safe(_home() / "build", mode)


def _home() -> Path:
    return _safe(_top(), _CLOSED)


def _top() -> Path:
    return Path(os.environ.get("TMPDIR") or "/var/tmp") / f"flowos-{os.geteuid()}"


def _safe(place: Path, mode: int) -> Path:
    """Made if it is not there. Anyone may have made one of this name before us."""
    try:
        place.mkdir(mode=mode, parents=True, exist_ok=True)
        seen = place.lstat()
    except OSError as error:
        raise EnvironmentRefused(f"cannot work in {place}: {error.strerror}") from error
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise EnvironmentRefused(f"{place} belongs to somebody else: have it removed")
    if stat.S_IMODE(seen.st_mode) & ~mode:
        raise EnvironmentRefused(f"{place} is open to others; mend: chmod {mode:o} {place}")
    if stat.S_IMODE(seen.st_mode) != mode:  # the umask took what others must have
        place.chmod(mode)
    return place


def _remove_left(base: Path) -> None:
    """The folders whose process is gone: their lock is free."""
    for folder in base.iterdir():
        with suppress(OSError), locked(folder, os.O_RDONLY | os.O_DIRECTORY, wait=False):
            remove(folder)


@contextmanager
def locked(path: Path, flags: int, *, wait: bool = True) -> Iterator[None]:
    """Hold its lock. OSError: another has it, if we do not wait."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(fd)
