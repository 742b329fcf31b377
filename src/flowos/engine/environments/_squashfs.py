"""Looking into a squashfs, and unpacking one, by squashfs-tools as an ordinary user."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from flowos.drivers import runtime_named
from flowos.drivers.images import squashfs
from flowos.engine._ask import ToolAnswer, ask, which
from flowos.engine.launch._prepared import own_variables, prepare
from flowos.engine.launch._session import LaunchSession
from flowos.model import EnvironmentRefused, Exited, Launch

_LOOK_SECONDS = 60.0
_UNPACK_SECONDS = 3600.0
_INSTALL = "install squashfs-tools (Debian: sudo apt-get install squashfs-tools)"


def read_in_squashfs(image: Path, inside: str) -> bytes:
    """A small file's content; empty if it is not there, or nothing here can look."""
    if which("unsquashfs") is None:
        return b""
    done = _unsquashfs("-no-wildcards", "-cat", str(image), inside)
    return done.stdout if done.code == 0 else b""


def found_in_squashfs(image: Path, paths: Sequence[PurePath]) -> set[PurePath]:
    """Which of these absolute paths are there under exactly this name, behind no link."""
    words = [str(path).lstrip("/") for path in paths]
    done = _unsquashfs("-no-wildcards", "-dest", "", "-ls", str(image), *words)
    listed = {line.lstrip(b"/") for line in done.stdout.splitlines()}
    return {path for path, word in zip(paths, words, strict=True) if word.encode() in listed}


def unpacked_bytes(image: Path) -> int:
    """Bytes of all its files. Raises ValueError if the image cannot be read."""
    done = _unsquashfs("-llnumeric", str(image))
    if complaint := squashfs.complaint(done.code, done.says):
        raise ValueError(complaint)
    return sum(map(_size_in, done.stdout.splitlines()))


def unpack_squashfs(image: Path, to: Path, session: LaunchSession) -> None:
    """Unpack it as `to`, without owners and extended attributes. Raises ValueError if it fails."""
    if which("unsquashfs") is None:
        raise EnvironmentRefused(f"no unsquashfs to unpack an image with; {_INSTALL}")
    argv = squashfs.unsquash(image, to, processors=len(os.sched_getaffinity(0)))
    variables = (*own_variables(), ("LC_ALL", "C.UTF-8"))
    launch = Launch(argv=argv, variables=variables, limit_seconds=_UNPACK_SECONDS)
    outcome = prepare(launch, runtime_named("bare"), session).run()
    said = outcome.stderr.decode(errors="replace")
    code = outcome.end.code if isinstance(outcome.end, Exited) else -1
    if complaint := squashfs.complaint(code, said if code >= 0 else f"{said}\n{outcome.end}"):
        raise ValueError(complaint)


def _size_in(line: bytes) -> int:
    """-rwxr-xr-x 0/0  1234 2026-11-20 01:02 squashfs-root/path: only of a file is it bytes."""
    words = line.split(maxsplit=3)
    return int(words[2]) if line.startswith(b"-") and len(words) > 2 else 0


def _unsquashfs(*words: str) -> ToolAnswer:
    try:
        return ask(["unsquashfs", *words], seconds=_LOOK_SECONDS)
    except FileNotFoundError as error:
        raise EnvironmentRefused(f"no unsquashfs to look into an image; {_INSTALL}") from error
    except TimeoutError as error:
        raise EnvironmentRefused(str(error)) from error
