"""Two looks at a machine, and what it did in between: which CPUs other processes had.

The kernel counts cpu time in ticks (10 ms as a rule), so what lies within the error of counting is
not called another's work. In a container /proc/stat is as a rule the host's: then `others_cpus` and
`steal_share` are those of the whole host, which is what disturbs a measurement.
"""

import math
import os
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.model import Usage

if TYPE_CHECKING:
    from flowos.model import MachineState

_MAX_WATTS = 1000.0
"""More than any package takes: what may have been taken in a time."""
_QUIET_DISK = 256 << 10
"""Bytes a second: while a disk moves less in all, it is not asked whose they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes read and written since some start: over the disk in all, and by us."""

    all_bytes: int
    our_bytes: int


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """Joules since some start; the counter begins anew after `max_joules`."""

    name: str
    joules: float
    max_joules: float


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
    energy: tuple[EnergyCounter, ...] = ()
    celsius: float | None = None
    heat_throttles: float | None = None


def state_between(before: Look, after: Look, *usages: Usage) -> "MachineState":
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
        share = steal / max(busy + idle + steal, tick_seconds())
    joules = _joules(before.energy, after.energy, wall)
    from flowos.model import MachineState  # 10 ms, which slices need not take

    return MachineState(
        load=_both(before.load, after.load),
        steal_share=share,
        others_cpus=others,
        throttled_seconds=_passed(before.throttled, after.throttled),
        memory_pressure=_share(before.memory_stalled, after.memory_stalled, wall),
        others_disk=_others_on_disk(before.disk, after.disk, wall),
        joules=joules,
        watts=None if joules is None else joules / wall,
        celsius=_both(before.celsius, after.celsius),
        heat_throttles=_passed(before.heat_throttles, after.heat_throttles),
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


def _joules(
    before: tuple[EnergyCounter, ...], after: tuple[EnergyCounter, ...], wall: float
) -> float | None:
    """None if a counter is new, or may have begun anew more than once."""
    began = {counter.name: counter for counter in before}
    if not after or began.keys() != {counter.name for counter in after}:
        return None
    if any(wall * _MAX_WATTS > counter.max_joules for counter in after):
        return None
    passed = (c.joules - began[c.name].joules for c in after)
    return sum(p if p >= 0 else p + c.max_joules for p, c in zip(passed, after, strict=True))


def _both(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)


def _passed(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def _counting_error(busy: float, wall: float) -> float:
    """What tick counting of this many busy cpus may be wrong by: their errors add at random."""
    return tick_seconds() * (1 + math.sqrt(busy / wall))


def tick_seconds() -> float:
    return 1 / os.sysconf("SC_CLK_TCK")
