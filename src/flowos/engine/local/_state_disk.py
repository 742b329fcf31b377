"""What goes over the disk under a folder, as the kernel counts it, and what of that is ours.

/proc/diskstats (Linux Documentation/admin-guide/iostats.rst) counts sectors of whole disks. Ours is
what this process and its descendants read and wrote; some kernels do not count that.
"""

import os
import resource
from pathlib import Path

from flowos.engine._look import Traffic

_SECTOR_BYTES = 512
_NAME, _READ, _WRITTEN = 2, 5, 9


def traffic(folder: Path, root: Path = Path("/")) -> Traffic | None:
    """Of the disk that holds the folder; None where there is none, or not all can be counted.

    root: where proc and sys lie.
    """
    moved = _moved_bytes(folder, root)
    if moved is None or not (root / "proc/self/io").exists():
        return None
    return Traffic(all_bytes=moved, our_bytes=_our_bytes())


def _moved_bytes(folder: Path, root: Path) -> int | None:
    numbers = _device(folder, root)
    name = _whole_disk(numbers, root)
    for words in map(str.split, _lines(root / "proc/diskstats")):
        if len(words) > _WRITTEN and (words[_NAME] == name or ":".join(words[:2]) == name):
            return (int(words[_READ]) + int(words[_WRITTEN])) * _SECTOR_BYTES
    return None


def _device(folder: Path, root: Path) -> str:
    """MAJOR:MINOR of what the folder's file system is on; of several devices (btrfs) the one that
    was mounted; "" where it is on none."""
    try:
        number = folder.stat().st_dev
        if os.major(number) == 0:
            number = Path(_mounted_from(folder.resolve(), root)).stat().st_rdev
    except OSError:
        return ""
    return f"{os.major(number)}:{os.minor(number)}" if os.major(number) else ""


def _mounted_from(folder: Path, root: Path) -> str:
    """What is mounted where the folder lies; of several mounts there the last."""
    found, deepest = "", -1
    for line in _lines(root / "proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4])
        if folder.is_relative_to(point) and len(point.parts) >= deepest:
            found, deepest = right.split()[1], len(point.parts)
    return found


def _whole_disk(numbers: str, root: Path) -> str:
    """The name of the disk that a partition belongs to; else the numbers themselves."""
    here = root / "sys/dev/block" / numbers
    if numbers and (here / "partition").exists():
        return here.resolve().parent.name
    return numbers


def _our_bytes() -> int:
    """Of this process and of its descendants that have been waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum((u.ru_inblock + u.ru_oublock) * _SECTOR_BYTES for u in used)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
