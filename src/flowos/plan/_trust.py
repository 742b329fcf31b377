"""Decides whether a number can be trusted, from the machine's state around its samples."""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from statistics import median

from flowos._dataclasses import dataclass, replace
from flowos.model import MachineState, Trust
from flowos.plan._regimes import regimes


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseThresholds:
    """Limits above which the machine's state counts as a disturbance.

    clock_change: relative change of the clock, before to after. A quiet virtual machine changes by
        up to 3 %.
    add_imul_ratio: a dependent multiply takes 3 cycles on every x86-64 in use, an add 1. If the
        ratio is off by more than the share add_imul_change, something else used the core meanwhile.
        On other architectures the median of all ratios seen replaces 3 (`limits_for`).
    scaling: all cores over (cores x one); this one is a lower limit. Two virtual cpus on one
        physical core give 0.5 to 0.65, a quiet machine 0.97 and more.
    steal_share: 1 % is visible in a median.
    others_cpus: a tenth of a cpu; idle daemons stay below a twentieth.
    starved_share: share of its time that a spinning thread could not run. On a shared host 0 to 6 %
        without any visible process; a competing spinner takes 30 % and more.
    throttled_seconds: any time that a cpu quota took away lies inside the measurement.
    others_disk: share of the bytes moved on the disk during the measurement that were not ours. The
        journal of a quiet file system stays below a fiftieth.
    io_pressure: share of the time before and after a storage measurement, while we were idle, that
        some process waited for storage. Occasional file syncs stay below a tenth.
    heat_throttles: any slowing down by heat lies inside the measurement.
    memory_pressure: processes that wait for memory have pages written out or read back.
    load: runnable tasks before the measurement; a fallback for when the work of others could not be
        counted, because the load includes our own work of the last minute. None: not checked.
    """

    clock_change: float = 0.05
    add_imul_ratio: float = 3.0
    add_imul_change: float = 0.03
    scaling: float = 0.95
    steal_share: float = 0.01
    others_cpus: float = 0.1
    starved_share: float = 0.1
    throttled_seconds: float = 0.0
    others_disk: float = 0.05
    io_pressure: float = 0.2
    memory_pressure: float = 0.05
    heat_throttles: float = 0.0
    load: float | None = None


NOISE_THRESHOLDS = NoiseThresholds()


def limits_for(
    architecture: str, states: Iterable[MachineState] = (), cpus: int | None = None
) -> NoiseThresholds:
    """The limits for this architecture.

    states: all states seen; except on x86-64, their median add/multiply ratio is the reference.
    cpus: number of cpus we may use; the limit of the load is one more than that.
    """
    limits = replace(NOISE_THRESHOLDS, load=None if cpus is None else cpus + 1.0)
    if architecture in ("x86_64", "amd64"):
        return limits
    ratios = [r for s in states for r in s.add_imul_ratio or () if math.isfinite(r)]
    return replace(limits, add_imul_ratio=median(ratios) if ratios else math.nan)


def assess_trust(
    states: Iterable[MachineState],
    values: Iterable[float] = (),
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> Trust:
    """Evidence against a number, from these states and from the values measured in them.

    One mark for each kind of disturbance, with the figures of the first state that shows it.
    Unknown values (None or NaN) add no mark.
    """
    states = tuple(states)
    marks: list[str] = []
    for rule in _RULES:
        complaints = [mark for state in states if (mark := rule(state, limits))]
        if complaints:
            where = f" (in {len(complaints)} of {len(states)} samples)" if len(states) > 1 else ""
            marks.append(complaints[0] + where)
    if two := regimes(values):
        marks.append(str(two))
    return Trust(marks=tuple(marks))


@lru_cache(maxsize=4096)
def undisturbed(state: MachineState, limits: NoiseThresholds) -> bool:
    """Whether this state has no marks. All metrics of one launch share a state, hence the cache."""
    return assess_trust([state], limits=limits).good


def _clock(state: MachineState, limits: NoiseThresholds) -> str | None:
    before, after = state.clock_hz or (math.nan, math.nan)
    if abs(after - before) > limits.clock_change * before:
        return f"the clock went from {before / 1e9:.2f} to {after / 1e9:.2f} GHz"
    return None


def _add_imul(state: MachineState, limits: NoiseThresholds) -> str | None:
    quiet = limits.add_imul_ratio
    worst = max(state.add_imul_ratio or (math.nan,), key=lambda ratio: abs(ratio - quiet))
    if abs(worst - quiet) > limits.add_imul_change * quiet:
        return f"a multiply took as long as {worst:.2f} adds instead of {quiet:.2f}"
    return None


def _scaling(state: MachineState, limits: NoiseThresholds) -> str | None:
    worst = min(state.scaling or (math.nan,))
    if worst < limits.scaling:
        return f"all cpus together gave {worst:.0%} of what one alone promises"
    return None


def _starved(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.starved_share, limits.starved_share):
        share = f"{state.starved_share:.0%}"
        return f"something else ran on our cpus {share} of the time just before or after"
    return None


def _steal(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.steal_share, limits.steal_share):
        return f"the hypervisor took {state.steal_share:.1%} of the cpu time"
    return None


def _others(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.others_cpus, limits.others_cpus):
        return f"other processes kept {state.others_cpus:.2f} cpus busy"
    return None


def _throttled(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.throttled_seconds, limits.throttled_seconds):
        return f"a cpu quota held the processes back for {state.throttled_seconds:.3f} s"
    return None


def _heat(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.heat_throttles, limits.heat_throttles):
        at = f", at {max(state.celsius):.0f} C" if state.celsius else ""
        return f"heat throttled the processors (kernel's count: {state.heat_throttles:.0f}{at})"
    return None


def _others_disk(state: MachineState, limits: NoiseThresholds) -> str | None:
    rate, share = state.others_disk or (math.nan, None)
    if _above(share, limits.others_disk):
        return f"others moved {rate / 1e6:.3g} MB/s on the disk, {share:.0%} of all that it moved"
    return None


def _io_pressure(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.io_pressure, limits.io_pressure):
        return f"other processes waited for storage {state.io_pressure:.0%} of the time around"
    return None


def _memory_pressure(state: MachineState, limits: NoiseThresholds) -> str | None:
    if _above(state.memory_pressure, limits.memory_pressure):
        return f"processes waited for memory {state.memory_pressure:.0%} of the time"
    return None


def _load(state: MachineState, limits: NoiseThresholds) -> str | None:
    if state.others_cpus is None and state.load and _above(state.load[0], limits.load):
        return f"{state.load[0]:.1f} tasks ran or waited before"
    return None


_RULES: tuple[Callable[[MachineState, NoiseThresholds], str | None], ...] = (
    _starved,
    _others,
    _throttled,
    _others_disk,
    _io_pressure,
    _memory_pressure,
    _load,
    _heat,
    _steal,
    _clock,
    _add_imul,
    _scaling,
)
"""First what a person can end, then what the host does, then what only shows by its effect."""


def _above(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value > limit
