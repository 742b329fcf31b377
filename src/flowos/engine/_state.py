"""What the machine did around a launch, from /proc and the cgroups: who else had the cpus?

The kernel counts cpu time in ticks (10 ms as a rule), so what lies within the error of counting is
not called another's work. In a container /proc/stat is as a rule the host's: then `others_cpus` and
`steal_share` are those of the whole host, which is what disturbs a measurement.
"""

import math
import os
import re
import resource
import time
from dataclasses import dataclass
from pathlib import Path, PurePath

from flowos.engine._state_disk import Traffic, traffic
from flowos.model import MachineState, Usage

_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq of /proc/stat; guest is part of user
_IDLE = (3, 4)  # idle, iowait
_STEAL = 7
_QUIET_DISK = 256 << 10
"""Bytes a second: while a disk moves less in all, it is not asked whose they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Counters at one moment, in seconds since some start; None where they cannot be read."""

    at: float
    ours: float
    busy: float | None
    idle: float | None
    steal: float | None
    throttled: float | None
    load: float | None
    io_stalled: float | None = None
    memory_stalled: float | None = None
    disk: Traffic | None = None


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
    )


def state_between(before: Look, after: Look, *usages: Usage) -> MachineState:
    """The machine between two looks.

    usages: of what was launched in between, where it was not a child of this process that has been
    waited for; the larger of both is counted as ours.
    """
    wall = max(after.at - before.at, 1e-9)
    launched = sum(usage.user_seconds + usage.system_seconds for usage in usages)
    ours = max(after.ours - before.ours, launched)
    busy, idle = _passed(before.busy, after.busy), _passed(before.idle, after.idle)
    steal = _passed(before.steal, after.steal)
    others = None if busy is None else max(0.0, busy - ours - _counting_error(busy, wall)) / wall
    share = None
    if busy is not None and idle is not None and steal is not None:
        share = steal / max(busy + idle + steal, _tick_seconds())
    return MachineState(
        load=None if before.load is None or after.load is None else (before.load, after.load),
        steal_share=share,
        others_cpus=others,
        throttled_seconds=_passed(before.throttled, after.throttled),
        memory_pressure=_share(before.memory_stalled, after.memory_stalled, wall),
        others_disk=_others_on_disk(before.disk, after.disk, wall),
    )


def io_pressure_between(before: Look, after: Look) -> float | None:
    """The share of the time in which some process waited for storage, ours among them."""
    return _share(before.io_stalled, after.io_stalled, max(after.at - before.at, 1e-9))


def _share(before: float | None, after: float | None, wall: float) -> float | None:
    passed = _passed(before, after)
    return None if passed is None else min(1.0, passed / wall)


def _others_on_disk(
    before: Traffic | None, after: Traffic | None, wall: float
) -> tuple[float, float] | None:
    """What others moved, in byte/s and as a share of all."""
    if before is None or after is None:
        return None
    everything = after.all_bytes - before.all_bytes
    if everything < _QUIET_DISK * wall:
        return 0.0, 0.0
    others = max(0, everything - (after.our_bytes - before.our_bytes))
    return others / wall, others / everything


def _passed(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def _counting_error(busy: float, wall: float) -> float:
    """What tick counting of this many busy cpus may be wrong by: their errors add at random."""
    return _tick_seconds() * (1 + math.sqrt(busy / wall))


def _tick_seconds() -> float:
    return 1 / os.sysconf("SC_CLK_TCK")


def _our_cpu_seconds() -> float:
    """Of this process and of its descendants that have been waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def _cpu_times(stat: Path) -> tuple[float | None, float | None, float | None]:
    """Busy, idle and stolen seconds of all cpus."""
    words = (_text(stat).splitlines() or [""])[0].split()
    if words[:1] != ["cpu"] or len(words) <= 1 + _STEAL:
        return None, None, None
    seconds = [int(word) * _tick_seconds() for word in words[1:]]
    return sum(seconds[i] for i in _BUSY), sum(seconds[i] for i in _IDLE), seconds[_STEAL]


def _load(loadavg: Path) -> float | None:
    words = _text(loadavg).split()
    return float(words[0]) if words else None


def _throttled_seconds(root: Path) -> float | None:
    """What quotas held back so far, of our cgroup and of those above it that can be seen."""
    found = [
        seconds
        for folder in cpu_cgroups(root)
        if (seconds := _throttled_in(_text(folder / "cpu.stat"))) is not None
    ]
    return sum(found) if found else None


def _stalled_seconds(root: Path, what: str) -> float | None:
    """How long some process waited for this resource so far (Linux Documentation/accounting/psi).

    Of the whole machine; where only cgroups count it, of the largest that can be seen.
    """
    files = (root / "proc/pressure" / what, *(g / f"{what}.pressure" for g in cgroups_v2(root)))
    for file in files:
        found = re.search(r"(?m)^some .*\btotal=(\d+)", _text(file))
        if found:
            return int(found[1]) * 1e-6
    return None


def cgroups_v2(root: Path) -> list[Path]:
    """Our cgroup of the unified hierarchy and its ancestors, from the top."""
    tops = [path for _, path in _cgroup_mounts(root).get("cgroup2", [])]
    ours = (folder for folder in cpu_cgroups(root) if any(map(folder.is_relative_to, tops)))
    return sorted(dict.fromkeys(ours), key=lambda folder: len(folder.parts))


def _throttled_in(cpu_stat: str) -> float | None:
    """throttled_usec of cgroup v2, throttled_time (ns) of v1."""
    fields = dict(line.split()[:2] for line in cpu_stat.splitlines() if " " in line)
    if "throttled_usec" in fields:
        return int(fields["throttled_usec"]) * 1e-6
    if "throttled_time" in fields:
        return int(fields["throttled_time"]) * 1e-9
    return None


def cpu_cgroups(root: Path) -> list[Path]:
    """Our cgroup and its ancestors, in every mounted hierarchy that may hold a cpu quota."""
    folders: list[Path] = []
    mounts = _cgroup_mounts(root)
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        kind = "cgroup2" if number == "0" else "cgroup"
        if kind == "cgroup" and "cpu" not in controllers.split(","):
            continue
        for top, mount in mounts.get(kind, ()):
            below = PurePath(path).relative_to(top) if PurePath(path).is_relative_to(top) else None
            here = mount / (below or "")
            folders += (here, *(up for up in here.parents if up.is_relative_to(mount)))
    return folders


def _cgroup_mounts(root: Path) -> dict[str, list[tuple[str, Path]]]:
    """Which cgroup is mounted where: cgroup2, and cgroup (v1) with the controller cpu."""
    mounts: dict[str, list[tuple[str, Path]]] = {}
    for line in _text(root / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = [*right.split(), "", "", ""][:3]
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            top, mount = left.split()[3:5]
            mounts.setdefault(kind, []).append((top, root / mount.lstrip("/")))
    return mounts


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
