"""What this node lets us use: processors, memory, GPUs."""

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from flowos.engine.local._cgroups import cpu_cgroups, text_of
from flowos.model import CUDA


def usable_cpus(root: Path = Path("/")) -> list[int]:
    """The numbers of as many processors as we may use."""
    return sorted(os.sched_getaffinity(0))[: usable_cores(root)]


def usable_cores(root: Path = Path("/")) -> int:
    """Processors that we may run on, bounded by the cgroups' quotas; at least one."""
    allowed = len(os.sched_getaffinity(0))
    return max(1, min([allowed, *(int(quota) for quota in _quotas(root))]))


def memory_bytes() -> int:
    """Physical memory of the node."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def gpu_count() -> int:
    """NVIDIA devices that the kernel shows."""
    return sum(bool(re.fullmatch(r"nvidia\d+", p.name)) for p in Path("/dev").glob("nvidia*"))


def usable_gpus() -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs that we may use: those that it lists, if it is set.

    As CUDA does: nothing that follows a word which is no GPU is one.
    """
    count, listed = gpu_count(), os.environ.get(CUDA)
    if listed is None:
        return tuple(map(str, range(count)))
    words = [word.strip() for word in listed.split(",")] if count else []
    return tuple(dict.fromkeys(takewhile(lambda word: _is_gpu(word, count), words)))


def _is_gpu(word: str, count: int) -> bool:
    """By its number, or by its name, that of a part of it too."""
    return word.startswith(("GPU-", "MIG-")) or (word.isdecimal() and int(word) < count)


def _quotas(root: Path) -> Iterator[float]:
    """In processors: of our cgroup and of those above it, as both versions write them."""
    for folder in cpu_cgroups(root):
        words = text_of(folder / "cpu.max").split()
        words = words or [text_of(folder / f"cpu.cfs_{name}_us").strip() for name in _OLD]
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            yield int(words[0]) / int(words[1])


_OLD = ("quota", "period")
