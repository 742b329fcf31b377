"""Looking into a squashfs, and unpacking one, by squashfs-tools as an ordinary user."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath

from flowos.drivers.images import squashfs
from flowos.model import EnvironmentRefused

_LOOK_SECONDS = 60.0
_UNPACK_SECONDS = 3600.0
_INSTALL = "install squashfs-tools (Debian: sudo apt-get install squashfs-tools)"


def read_in_squashfs(image: Path, inside: str) -> bytes:
    """A small file's content; empty if it is not there, or nothing here can look."""
    if shutil.which("unsquashfs") is None:
        return b""
    done = _unsquashfs("-no-wildcards", "-cat", str(image), inside)
    return done.stdout if done.returncode == 0 else b""


def found_in_squashfs(image: Path, paths: Sequence[PurePath]) -> set[PurePath]:
    """Which of these absolute paths are there under exactly this name, behind no link."""
    words = [str(path).lstrip("/") for path in paths]
    done = _unsquashfs("-no-wildcards", "-dest", "", "-ls", str(image), *words)
    listed = {line.lstrip(b"/") for line in done.stdout.splitlines()}
    return {path for path, word in zip(paths, words, strict=True) if word.encode() in listed}


def unpacked_bytes(image: Path) -> int:
    """What its files add up to."""
    done = _unsquashfs("-llnumeric", str(image))
    if done.returncode != 0:
        raise EnvironmentRefused(f"image {image}: {_complaint(done)}")
    return sum(map(_size_in, done.stdout.splitlines()))


def unpack_squashfs(image: Path, to: Path) -> None:
    """Make the folder `to` of it: no owners, no extended attributes. EnvironmentRefused."""
    words = ("-no-xattrs", "-no-progress", "-quiet", "-dest", str(to), str(image))
    done = _unsquashfs(*words, seconds=_UNPACK_SECONDS)
    # 2: something that only root can make, a device node, was left out
    damaged = done.returncode != 0 and squashfs.is_damaged(_said(done))
    if damaged or done.returncode not in (0, 2) or not to.is_dir():
        raise EnvironmentRefused(f"image {image}: {_complaint(done)}")


def _size_in(line: bytes) -> int:
    """-rwxr-xr-x 0/0  1234 2026-11-20 01:02 squashfs-root/path: only of a file is it bytes."""
    words = line.split(maxsplit=3)
    return int(words[2]) if line.startswith(b"-") and len(words) > 2 else 0


def _unsquashfs(
    *words: str, seconds: float = _LOOK_SECONDS
) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(
            ["unsquashfs", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except FileNotFoundError as error:
        raise EnvironmentRefused(f"no unsquashfs to unpack an image with; {_INSTALL}") from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentRefused(f"unsquashfs gave no answer within {seconds:.0f} s") from error


def _complaint(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Its last line: those before may be bare figures."""
    said = _said(done).strip().splitlines()[-1:] or [f"exit {done.returncode}"]
    if squashfs.is_damaged(_said(done)):
        return (
            f"damaged (unsquashfs says: {said[0].strip()}): take it again, or, if it is in your "
            "library, look with `flowos image verify NAME`"
        )
    return f"it cannot be unpacked: {said[0].strip()}"


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    return done.stderr.decode(errors="replace")
