"""Images as folders of ours, each made once per digest, with the mount points that binds need.

    /var/tmp/flowos-UID/images/DIGEST       the folder
                               DIGEST.seen  what its tree looked like when it was made
                               DIGEST.lock  held while one of us makes or changes it
                               DIGEST.used  lock shared by all processes with launches in it

/var/tmp, as it is on a disk of the node and outlives a restart. What is there is used only if its
tree still looks as it did: systems clean /var/tmp file by file. It is made under a hidden name and
published by renaming; a half-made one is removed by the next to hold the lock.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.drivers.images import squashfs
from flowos.engine._ask import ask
from flowos.engine.environments._digest import tree_identity
from flowos.engine.environments._points import MountPoint, missing_points, place_inside
from flowos.engine.environments._squashfs import unpack_squashfs, unpacked_bytes
from flowos.engine.launch._private_dirs import (
    ON_DISK,
    locked,
    open_folders,
    own_folder,
    remove_tree,
)
from flowos.engine.launch._session import LaunchSession
from flowos.model import EnvironmentRefused, Image

_BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Unpacked:
    """A folder that stays until `let_go` is called, or this process is gone."""

    folder: Path
    let_go: Callable[[], None]


def unpacked(image: Image, session: LaunchSession, points: Sequence[MountPoint] = ()) -> Unpacked:
    """The folder of this image, with these mount points in it. EnvironmentRefused."""
    home = unpacked_folder()
    name = image.digest.rpartition(":")[2]
    folder, seen = home / name, home / f"{name}.seen"
    try:
        with locked(home / f"{name}.lock", os.O_RDWR | os.O_CREAT):
            was_there = _is_as_seen(folder, seen)
            if not was_there:
                _refuse_if_used(image, folder)
                _make(image, folder, session)
            missing = missing_points(folder, points)
            for point in missing:
                _make_point(folder, point)
            if missing or not was_there:
                seen.write_text(tree_identity(folder).words)
            return Unpacked(folder, partial(os.close, _held(folder, fcntl.LOCK_SH)))
    except OSError as error:
        raise EnvironmentRefused(f"image {image.source}: cannot be unpacked: {error}") from error
    except ValueError as error:
        raise EnvironmentRefused(f"image {image.source}: {error}{_mended(str(error))}") from error


def remove_unpacked(digest: str) -> str:
    """Remove what was unpacked of an image. What was done in words, "" where there was nothing."""
    home = unpacked_folder()
    name = digest.rpartition(":")[2]
    folder = home / name
    if not folder.is_dir():
        return ""
    with locked(home / f"{name}.lock", os.O_RDWR | os.O_CREAT):
        try:
            os.close(_held(folder, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            return f"kept: {folder}, which is in use"
        remove_tree(folder)
        if folder.exists():
            return f"kept: {folder}, of which not all can be removed"
        (home / f"{name}.seen").unlink(missing_ok=True)
    return f"removed: {folder}"


def _held(folder: Path, how: int) -> int:
    """A descriptor that holds the folder's use, until it is closed."""
    used = os.open(folder.with_name(f"{folder.name}.used"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(used, how)
    except OSError:
        os.close(used)
        raise
    return used


def _refuse_if_used(image: Image, folder: Path) -> None:
    try:
        os.close(_held(folder, fcntl.LOCK_EX | fcntl.LOCK_NB))
    except BlockingIOError:
        raise EnvironmentRefused(
            f"image {image.source}: {folder} was changed while something runs in it; end that first"
        ) from None


def _mended(complaint: str) -> str:
    if squashfs.DAMAGED not in complaint:
        return ""
    return ": take it again, or, if it is in your library, look with `flowos image verify NAME`"


def unpacked_folder() -> Path:
    """Raises EnvironmentRefused if the folder is not safe."""
    return own_folder(ON_DISK, "images")


def _is_as_seen(folder: Path, seen: Path) -> bool:
    return seen.exists() and folder.is_dir() and seen.read_text() == tree_identity(folder).words


def _make(image: Image, folder: Path, session: LaunchSession) -> None:
    half_made = folder.with_name(f".{folder.name}")
    for old in (half_made, folder):
        if old.exists():
            remove_tree(old)
    size, make = _how(image, session)
    _refuse_without_room(image, folder.parent, size)
    make(Path(image.source), half_made)
    open_folders(half_made)
    half_made.chmod(0o755)  # podman's overlay of it belongs to an unmapped user
    half_made.rename(folder)


def _how(image: Image, session: LaunchSession) -> tuple[int, Callable[[Path, Path], None]]:
    source = Path(image.source)
    if image.form == "folder":
        return sum(map(_file_bytes, source.rglob("*"))), _copy
    return unpacked_bytes(source), partial(unpack_squashfs, session=session)


def _file_bytes(path: Path) -> int:
    seen = path.lstat()
    return -(-seen.st_size // _BLOCK_BYTES) * _BLOCK_BYTES if stat.S_ISREG(seen.st_mode) else 0


def _copy(source: Path, to: Path) -> None:
    done = ask(["cp", "-R", "-p", "--reflink=auto", "--", source, to], seconds=None)
    if done.code != 0:
        raise EnvironmentRefused(f"image {source}: cannot be copied: {done.says[:200]}")


def _refuse_without_room(image: Image, place: Path, size: int) -> None:
    free = shutil.disk_usage(place).free
    if free < size:
        raise EnvironmentRefused(
            f"image {image.source}: unpacking it takes {size} bytes, {place} has {free} free; "
            "make room there"
        )


def _make_point(root: Path, point: MountPoint) -> None:
    place = place_inside(root, point.target)
    above = place.parent if point.file else place
    above.mkdir(parents=True, exist_ok=True)
    if point.file:
        place.touch()
