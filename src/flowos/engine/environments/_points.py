"""Where binds go inside an image, and how it gets the mount points that it lacks.

An overlay of empty folders and files does it, mounted by flowos-init in each launch's own
namespaces: nothing is unpacked, and neither the image nor the node is changed.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass
from flowos.drivers import overlaid, path_inside
from flowos.engine._ask import ask
from flowos.engine.launch._run_folders import remove_run_folder
from flowos.engine.launch._session import LaunchSession
from flowos.model import EnvironmentRefused, Image, Pairs, Tried

_LIMIT_SECONDS = 5.0
_MAX_LINKS = 40


@dataclass(frozen=True)
class MountPoint:
    """Where something is to be bound: an absolute path inside, a file or a folder."""

    target: PurePath
    file: bool = False


def is_shared(inside: PurePath) -> bool:
    """Whether it is the node's own in every environment."""
    return path_inside(inside, ()) is not None


def missing_points(root: Path, points: Sequence[MountPoint]) -> list[MountPoint]:
    return [point for point in points if not _is_there(root, point.target)]


def place_inside(root: Path, target: PurePath) -> Path:
    """Where an absolute path of the image lies outside: links lead nowhere but into the root.

    OSError for a loop, or so many links that what is left of them would be followed by the kernel.
    """
    todo = list(reversed(target.parts))
    place: list[str] = []
    links = 0
    while todo:
        part = todo.pop()
        if part == "/":
            place = []
        elif part == "..":
            place = place[:-1]
        elif (here := root.joinpath(*place, part)).is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(here))
            todo += reversed(here.readlink().parts)
        else:
            place.append(part)
    return root.joinpath(*place)


def binds_inside(root: Path, binds: Pairs) -> Pairs:
    """The same binds, with what links of the image make of their targets. EnvironmentRefused."""
    return tuple((source, _target_inside(root, target)) for source, target in binds)


def with_points(
    image: Image, points: Sequence[MountPoint], session: LaunchSession, undo: ExitStack
) -> Image:
    """An image that is a folder here, with what is missing of these. EnvironmentRefused."""
    root = Path(image.source)
    try:
        missing = missing_points(root, points)
        if not missing:
            return image
        at = session.run_folder()
        undo.callback(remove_run_folder, at)
        _describe_overlay(root, missing, at)
    except OSError as error:
        raise EnvironmentRefused(
            f"image {image.source}: cannot be given mount points: {error}"
        ) from error
    return overlaid(image, at)


def try_overlay(init: Path) -> Tried:
    """Whether the kernel lets us lay one over a folder here."""
    import tempfile  # takes long, and it is tried once

    with tempfile.TemporaryDirectory(prefix="flowos-", dir="/tmp") as name:
        root, at = Path(name, "root"), Path(name, "at")
        (root / "below").mkdir(parents=True)
        at.mkdir()
        _describe_overlay(root, [MountPoint(PurePath("/below/new"))], at)
        argv = [str(init), "--overlay", str(at), "--", "true"]
        try:
            done = ask(argv, seconds=_LIMIT_SECONDS)
        except OSError as error:
            return Tried(name="overlay", works=False, says=str(error))
    return Tried(name="overlay", works=done.code == 0, says=done.says)


def _is_there(root: Path, target: PurePath) -> bool:
    try:
        return os.path.lexists(place_inside(root, target))
    except OSError:  # endless links: making the place raises
        return False


def _target_inside(root: Path, target: str) -> str:
    inside = PurePath(target.removesuffix(":ro"))
    if is_shared(inside):
        return target
    try:
        place = place_inside(root, inside)
    except OSError as error:
        raise EnvironmentRefused(f"bind at {inside}: {error}") from error
    return f"/{place.relative_to(root)}" + ":ro" * target.endswith(":ro")


def _describe_overlay(root: Path, missing: Iterable[MountPoint], at: Path) -> None:
    """As init/overlay.h has it."""
    (at / "image").symlink_to(root)
    records = [*_made(root, missing)]
    (at / "mounts").write_bytes(os.fsencode("".join(f"{record}\0" for record in records)))


def _made(root: Path, missing: Iterable[MountPoint]) -> Iterator[str]:
    """Records of the folders and files that an overlay has, parents first, and of the overlay."""
    points = [(point.file, place_inside(root, point.target).relative_to(root)) for point in missing]
    tops = {_top(root, inside) for _, inside in points}
    folders = {above for _, inside in points for above in inside.parents}
    folders |= {inside for is_file, inside in points if not is_file}
    for folder in sorted(folders, key=_depth):
        yield f"d{_mode(root / folder) if folder in tops else 0o755:o} {folder}"
    yield from (f"f{inside}" for is_file, inside in points if is_file)
    for top in sorted(tops, key=_depth):
        yield f"o{top}"
        yield from (f"b{path}" for path in _shown_again(root, top))


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU


def _depth(path: PurePath) -> int:
    return len(path.parts)


def _top(root: Path, inside: PurePath) -> PurePath:
    """The deepest folder on the way to a mount point that the image has."""
    above = [*reversed(inside.parents)]
    for folder in (*above, inside):
        if os.path.lexists(root / folder) and not (root / folder).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), f"/{folder}")
    return next(folder for folder in reversed(above) if (root / folder).is_dir())


def _shown_again(root: Path, top: PurePath) -> Iterator[PurePath]:
    """What is in a folder of the image and would be more closed under an overlay."""
    with os.scandir(root / top) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) or _is_closed(entry):
                yield top / entry.name


def _is_closed(entry: "os.DirEntry[str]") -> bool:
    """A file that its owner may use in a way in which others may not."""
    if not entry.is_file(follow_symlinks=False):
        return False
    mode = entry.stat(follow_symlinks=False).st_mode
    own = (mode & stat.S_IRWXU) >> 6
    return bool(own & ~mode & (stat.S_IROTH | stat.S_IXOTH))
