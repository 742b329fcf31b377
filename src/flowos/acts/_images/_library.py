"""The library: one squashfs per digest, in this user's data folder, and what they are called.

    $XDG_DATA_HOME/flowos/images/HEX.sqfs

A file appears there whole, by renaming, read-only. One that is being made is hidden and locked;
what a killed process left of one is removed by the next that makes one.
"""

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flowos.acts._images._layers import digest_of, whole
from flowos.acts._images._scratch import check_room, locked, why
from flowos.acts._images._tools import launch_of, need, processors, ran
from flowos.acts._images._tree import write_tar
from flowos.acts.measure import Emit, Progress
from flowos.drivers.images import squashfs
from flowos.drivers.images.tree import Folder, total_bytes
from flowos.engine import start
from flowos.model import EnvironmentRefused, UsageError
from flowos.store import KeptImage, default_file

SUFFIX = ".sqfs"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TAKEN = ("bare", "auto", "last")
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{6,64})")
_SHOW_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An image in the library."""

    path: Path
    digest: str
    size_bytes: int
    was_there: bool = False


def library() -> Path:
    return default_file().parent / "images"


def checked_name(name: str) -> str:
    """UsageError if it could be taken for a path, a runtime or a digest."""
    if not _NAME.fullmatch(name) or name in _TAKEN or _DIGEST.fullmatch(name):
        raise UsageError(
            f"image name {name!r:.120}: letters, digits, '.', '_' and '-', at most 100, beginning "
            f"with a letter or digit; not {', '.join(_TAKEN)}, and not like a digest"
        )
    return name


def name_from(source: str) -> str:
    """A name out of a source's own: docker://host/tools/fio:3 -> fio-3, a/b/c.tar.gz -> c."""
    words = source.removeprefix("docker://").partition("@")[0].rstrip("/").rpartition("/")[2]
    stem = re.sub(r"(\.(tar|tgz|gz|xz|bz2|zst|sif|sqfs|squashfs|oci|img|def))+$", "", words)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:100]
    return name if _NAME.fullmatch(name) and not _is_refused(name) else f"image-{name or 'x'}"


def path_of(digest: str) -> Path:
    return library() / f"{digest.removeprefix('sha256:')}{SUFFIX}"


def stored() -> dict[str, Stored]:
    """Digest -> what lies in the library, whether it is named or not."""
    here = library()
    if not here.is_dir():
        return {}
    paths = (path for path in here.iterdir() if re.fullmatch(r"[0-9a-f]{64}\.sqfs", path.name))
    found = {}
    for path in paths:
        digest = f"sha256:{path.stem}"
        found[digest] = Stored(path=path, digest=digest, size_bytes=path.stat().st_size)
    return found


def digest_meant(word: str, named: tuple[KeptImage, ...]) -> str:
    """The digest of a name, or of a digest's beginning. EnvironmentRefused: none, or several."""
    by_name = {image.name: image.digest for image in named}
    if word in by_name:
        return by_name[word]
    digests = set(stored()) | set(by_name.values())
    start_ = _DIGEST.fullmatch(word)
    fits = sorted(d for d in digests if start_ and d.startswith(f"sha256:{start_[1]}"))
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise EnvironmentRefused(f"{word!r:.120} fits {len(fits)} images: write more of the digest")
    known = ", ".join(sorted(by_name)) or "none yet; 'flowos image import' or 'build' makes one"
    raise EnvironmentRefused(f"no image is called {word!r:.120}; known are {known}")


def squash(tree: Folder, emit: Emit) -> Stored:
    """Put a tree into the library as a squashfs. EnvironmentRefused: no room, no right, no tool."""
    need("mksquashfs", squashfs.PACKAGE, "make an image with")
    total = total_bytes(tree)
    try:
        with _half_made() as part:
            check_room(part.parent, total // 2, "the image")
            _run_mksquashfs(tree, part, total, emit)
            emit(Progress(doing="taking the digest"))
            return _published(part)
    except OSError as error:
        raise EnvironmentRefused(f"cannot keep the image: {why(error, library())}") from error


def taken_over(source: Path) -> Stored:
    """Put a squashfs that is an image of ours already into the library, byte for byte."""
    try:
        with _half_made() as part:
            check_room(part.parent, source.stat().st_size, "the image")
            with source.open("rb") as raw, part.open("wb") as out:
                while data := raw.read(1 << 20):
                    out.write(data)
            return _published(part)
    except OSError as error:
        raise EnvironmentRefused(f"cannot keep the image: {why(error, library())}") from error


def _published(part: Path) -> Stored:
    fd = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    digest = digest_of(whole(part))
    place = path_of(digest)
    was_there = place.exists() and digest_of(whole(place)) == digest
    if not was_there:
        part.chmod(0o444)
        part.rename(place)
    return Stored(path=place, digest=digest, size_bytes=place.stat().st_size, was_there=was_there)


def _run_mksquashfs(tree: Folder, to: Path, total: int, emit: Emit) -> None:
    argv = squashfs.squash(to, processors=processors())
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        running = start(launch_of(argv, hides=squashfs.HIDES), stdin=reader)
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    try:
        with suppress(BrokenPipeError), os.fdopen(writer, "wb", buffering=1 << 20) as out:
            write_tar(tree, out, _Counter(total, emit).add)
        outcome = ran(running.wait())
    finally:
        running.stop()
        running.wait()
    if complaint := squashfs.complaint(outcome.code, outcome.stderr):
        raise EnvironmentRefused(f"mksquashfs: {complaint}")


class _Counter:
    """Says about every 8 MB how far the squashing is."""

    def __init__(self, total: int, emit: Emit) -> None:
        self._total, self._emit, self._done, self._shown = total, emit, 0, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._done - self._shown >= _SHOW_BYTES:
            self._shown = self._done
            self._emit(Progress(doing=f"squashing  {100 * self._done // self._total} %"))


@contextmanager
def _half_made() -> Iterator[Path]:
    here = library()
    here.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(here / ".lock", os.O_RDWR | os.O_CREAT):
        _remove_left(here)
        fd, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=here)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
        os.close(fd)


def _remove_left(here: Path) -> None:
    """Parts whose maker is gone: their lock is free."""
    for part in here.glob(".*.part"):
        with suppress(OSError):
            fd = os.open(part, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(fd)


def _is_refused(name: str) -> bool:
    return name in _TAKEN or _DIGEST.fullmatch(name) is not None
