"""Counters of this machine, from /proc and the cgroups: read around a launch."""

import re
import resource
import time
from pathlib import Path

from flowos.engine._look import Look, tick_seconds
from flowos.engine.local._cgroups import cgroups_v2, cpu_cgroups, text_of
from flowos.engine.local._processor_power import celsius, energy, throttles
from flowos.engine.local._state_disk import traffic

_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq of /proc/stat; guest is part of user
_IDLE = (3, 4)  # idle, iowait
_STEAL = 7


def look(root: Path = Path("/"), storage: Path | None = None) -> Look:
    """Read the counters. root: where proc and sys lie. storage: a folder on the disk to count."""
    busy, idle, steal = _cpu_times(root / "proc/stat")
    return Look(
        at=time.monotonic(),
        ours=_our_cpu_seconds(),
        busy=busy,
        idle=idle,
        steal=steal,
        throttled=_throttled_seconds(root),
        load=_load(root / "proc/loadavg"),
        io_stalled=_stalled_seconds(root, "io"),
        memory_stalled=_stalled_seconds(root, "memory"),
        disk=traffic(storage, root) if storage else None,
        energy=energy(root),
        celsius=celsius(root),
        heat_throttles=throttles(root),
    )


def _our_cpu_seconds() -> float:
    """Of this process and of its descendants that have been waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def _cpu_times(stat: Path) -> tuple[float | None, float | None, float | None]:
    """Busy, idle and stolen seconds of all cpus."""
    words = (text_of(stat).splitlines() or [""])[0].split()
    if words[:1] != ["cpu"] or len(words) <= 1 + _STEAL:
        return None, None, None
    seconds = [int(word) * tick_seconds() for word in words[1:]]
    return sum(seconds[i] for i in _BUSY), sum(seconds[i] for i in _IDLE), seconds[_STEAL]


def _load(loadavg: Path) -> float | None:
    words = text_of(loadavg).split()
    return float(words[0]) if words else None


def _throttled_seconds(root: Path) -> float | None:
    """What quotas held back so far, of our cgroup and of those above it that can be seen."""
    found = [
        seconds
        for folder in cpu_cgroups(root)
        if (seconds := _throttled_in(text_of(folder / "cpu.stat"))) is not None
    ]
    return sum(found) if found else None


def _stalled_seconds(root: Path, what: str) -> float | None:
    """How long some process waited for this resource so far (Linux Documentation/accounting/psi).

    Of the whole machine; where only cgroups count it, of the largest that can be seen.
    """
    files = (root / "proc/pressure" / what, *(g / f"{what}.pressure" for g in cgroups_v2(root)))
    for file in files:
        found = re.search(r"(?m)^some .*\btotal=(\d+)", text_of(file))
        if found:
            return int(found[1]) * 1e-6
    return None


def _throttled_in(cpu_stat: str) -> float | None:
    """throttled_usec of cgroup v2, throttled_time (ns) of v1."""
    fields = dict(line.split()[:2] for line in cpu_stat.splitlines() if " " in line)
    if "throttled_usec" in fields:
        return int(fields["throttled_usec"]) * 1e-6
    if "throttled_time" in fields:
        return int(fields["throttled_time"]) * 1e-9
    return None
