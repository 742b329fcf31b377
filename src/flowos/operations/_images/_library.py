"""The library: one squashfs per digest, in this user's data folder.

    $XDG_DATA_HOME/flowos/images/HEX.sqfs

A file appears there by renaming, complete and read-only. One that is being written is hidden and
locked; what a killed process left is removed by the next write.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.drivers.images import squashfs
from flowos.drivers.images.tree import Folder, total_bytes
from flowos.engine import here
from flowos.model import EnvironmentRefused, OnProgress, Progress
from flowos.operations._images._layers import digest_of, whole
from flowos.operations._images._names import changing, give_name, library, names, path_of
from flowos.operations._images._scratch import check_room, why
from flowos.operations._images._tools import launch_of, need, processors, ran
from flowos.operations._images._tree import write_tar

_SHOW_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An image in the library. before: the digest that its name had until now; "" if none."""

    path: Path
    digest: str
    size_bytes: int
    was_there: bool = False
    before: str = ""


def squash(tree: Folder, name: str, on_progress: OnProgress) -> Stored:
    """Put a tree into the library as a squashfs, and name it.

    Raises EnvironmentRefused if there is no space, no permission or no tool for it.
    """
    need("mksquashfs", squashfs.PACKAGE, "make an image with")
    total = total_bytes(tree)
    try:
        with _half_made() as part:
            check_room(part.parent, total // 2, "the image")
            _run_mksquashfs(tree, part, total, on_progress)
            on_progress(Progress(doing="taking the digest"))
            return _published(part, name)
    except OSError as error:
        raise EnvironmentRefused(f"cannot keep the image: {why(error, library())}") from error


def taken_over(source: Path, name: str) -> Stored:
    """Put a squashfs that is an image of ours already into the library, byte for byte."""
    try:
        with _half_made() as part:
            check_room(part.parent, source.stat().st_size, "the image")
            with source.open("rb") as raw, part.open("wb") as out:
                while data := raw.read(1 << 20):
                    out.write(data)
            return _published(part, name)
    except OSError as error:
        raise EnvironmentRefused(f"cannot keep the image: {why(error, library())}") from error


def _published(part: Path, name: str) -> Stored:
    """Rename and link under one lock: a concurrent removal sees neither, or both."""
    fd = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    digest = digest_of(whole(part))
    place = path_of(digest)
    is_whole = _has(place, digest)
    with changing():
        was_there = is_whole and place.exists()
        if not was_there:
            part.chmod(0o444)
            part.rename(place)
        before = give_name(name, digest)
        size = place.stat().st_size
    return Stored(path=place, digest=digest, size_bytes=size, was_there=was_there, before=before)


def _has(place: Path, digest: str) -> bool:
    try:
        return digest_of(whole(place)) == digest
    except OSError:
        return False


def _run_mksquashfs(tree: Folder, to: Path, total: int, on_progress: OnProgress) -> None:
    argv = squashfs.squash(to, processors=processors())
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        running = here().start(launch_of(argv, env_blocked=squashfs.ENV_BLOCKED), stdin=reader)
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    try:
        with suppress(BrokenPipeError), os.fdopen(writer, "wb", buffering=1 << 20) as out:
            write_tar(tree, out, _Counter(total, on_progress).add)
        outcome = ran(running.wait())
    finally:
        running.stop()
        running.wait()
    if complaint := squashfs.complaint(outcome.code, outcome.stderr):
        raise EnvironmentRefused(f"mksquashfs: {complaint}")


class _Counter:
    """Says about every 8 MB how far the squashing is."""

    def __init__(self, total: int, on_progress: OnProgress) -> None:
        self._total, self._on_progress, self._done, self._shown = total, on_progress, 0, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._done - self._shown >= _SHOW_BYTES:
            self._shown = self._done
            self._on_progress(
                Progress(doing="squashing", detail=f"{100 * self._done // self._total} %")
            )


@contextmanager
def _half_made() -> Iterator[Path]:
    names()  # names kept by an older FlowOS are taken over before a new one is added
    with changing() as here:
        _remove_left(here)
        fd, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=here)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
        os.close(fd)


def _remove_left(here: Path) -> None:
    """Remove parts whose process is gone: their lock is free."""
    for part in here.glob(".*.part"):
        with suppress(OSError):
            fd = os.open(part, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(fd)
