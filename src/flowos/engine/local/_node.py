"""What this node lets us use: processors, memory, GPUs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = _CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Processors that we may run on, bounded by the cgroup's quota; at least one."""
    allowed = len(os.sched_getaffinity(0))
    return max(1, min([allowed, *(int(q) for q in _quotas(cgroups, own))]))


def memory_bytes() -> int:
    """Physical memory of the node."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def gpu_count() -> int:
    """NVIDIA devices that the kernel shows."""
    return sum(bool(re.fullmatch(r"nvidia\d+", p.name)) for p in Path("/dev").glob("nvidia*"))


def _quotas(cgroups: Path, own: Path) -> Iterator[float]:
    """Quotas in processors, of our cgroup and of those above it, in both versions' layouts."""
    for root, path in _memberships(cgroups, own):
        inside = PurePosixPath(path.lstrip("/"))
        for folder in (inside, *inside.parents):
            yield from _quota_v2(root / folder / "cpu.max")
            yield from _quota_v1(root / folder)


def _memberships(cgroups: Path, own: Path) -> Iterator[tuple[Path, str]]:
    """Hierarchies that may limit processors, with our place in them."""
    for line in _read(own).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield cgroups, path
        elif "cpu" in controllers.split(","):
            yield cgroups / controllers, path
            yield cgroups / "cpu", path


def _quota_v2(file: Path) -> Iterator[float]:
    words = _read(file).split()
    if len(words) == 2 and words[0].isdigit():
        yield int(words[0]) / int(words[1])


def _quota_v1(folder: Path) -> Iterator[float]:
    quota = _read(folder / "cpu.cfs_quota_us").strip()
    period = _read(folder / "cpu.cfs_period_us").strip()
    if quota.isdigit() and period.isdigit() and int(period):
        yield int(quota) / int(period)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
