"""How the time of a run is shared out.

With one environment each probe has its first round before any has a second, the shortest first:
where estimates prove too low, as on a busy machine, as many as possible get their turn. Then those
whose conclusions need more rounds get them, as fewer conclude nothing, and each is measured for its
share (`seconds_for`). Probes that only bound the numbers of what was asked for
come last, and CEILING_SHARE at most is kept for them. What was measured so far shows how much
longer than estimated all takes (`at_pace`). With several environments, rounds of the probes
alternate, so that each comparison spans the whole time: see `_session`.
"""

import math
import sys
from collections.abc import Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import Design, Effort, Unmeasured

ONE = {"quick": 52.0, "normal": 165.0, "full": 3600.0}
SEVERAL = {"quick": 600.0, "normal": 1800.0, "full": 7200.0}
"""Budget of measuring, without facts, builds and the report. See `Sampler` for its end."""

SLACK, MIN_SHARE = 1.1, 0.6
"""A case may take SLACK times its estimate; none is started with less than MIN_SHARE of it left."""
ROOM = 1.2
"""A run takes a little more than its cases, even without facts."""
CEILING_SHARE = 0.2
"""Of the time left, kept for probes that only bound the numbers of what was asked for."""
SLOWEST_PACE = 3.0
"""How much longer than estimated cases are expected to take at most, whatever others took."""
PATIENCE = 8.0
"""A case may take so many times its estimate, even if others need that time."""

STOPPED = Unmeasured(
    reason="it still ran when the time was well past, and was stopped",
    remedy="give more time (--minutes), or measure when the machine has less to do",
)
TOOK_TOO_LONG = Unmeasured(
    reason="it took far longer than estimated, and was stopped, as others need the time",
    remedy="give more time (--minutes), or measure when the machine has less to do",
)
OUT_OF_TIME = "the time was out before its turn"
TOO_LITTLE_TIME = "it had too little time"
"""How the reasons begin; what it needed and the command that gives it stand in the rest."""


def not_reached(needed: float, left: float, command: str) -> Unmeasured:
    """Why a case was never begun. needed: seconds of its first round; left: seconds there were."""
    remedy = f"give more time, as in `{command}`"
    if left < MIN_SHARE:
        return Unmeasured(reason=OUT_OF_TIME, remedy=remedy)
    words = f"its first round needs about {needed:.0f} s, and {left:.0f} s were left"
    return Unmeasured(reason=f"{TOO_LITTLE_TIME}: {words}", remedy=remedy)


def lacked_time(why: Unmeasured) -> bool:
    """Whether it was not begun, or not waited for, as the time was out."""
    return why.reason in (TOOK_TOO_LONG.reason, STOPPED.reason) or not_begun(why)


def not_begun(why: Unmeasured) -> bool:
    """Whether there was no time for it to begin."""
    return why.reason.startswith((OUT_OF_TIME, TOO_LITTLE_TIME))


def enough_minutes(designs: Iterable[Design]) -> int:
    """Whole minutes for the minimum rounds of these, or until each is first looked at."""
    seconds = sum(d.looks[0] * round_seconds(d) if d.axis else min_seconds(d) for d in designs)
    return minutes_of(seconds)


def minutes_of(seconds: float) -> int:
    """Whole minutes in which so many seconds of measuring fit."""
    return max(1, math.ceil(ROOM * seconds / 60))


def budget_seconds(effort: Effort, compared: int) -> float:
    """compared: how many environments or commands."""
    return (SEVERAL if compared > 1 else ONE)[effort]


def overhead_seconds(environments: int) -> float:
    """Approximate cost per case of entering an environment and checking the machine."""
    return 0.5 if environments > 1 else 0.2


def once_seconds(d: Design) -> float:
    """Approximate time of each case once."""
    return sum(d.seconds.values())


def round_seconds(d: Design) -> float:
    """Approximate time of a whole round."""
    return d.turns * once_seconds(d)


def min_seconds(d: Design) -> float:
    """Approximate time of its minimum rounds."""
    return d.min_rounds * round_seconds(d)


def as_often_as_time_allows(d: Design) -> Design:
    """The design without a limit of rounds if cases are compared: more narrow the intervals."""
    return replace(d, min_rounds=sys.maxsize if d.turns > 1 else d.min_rounds)


def seconds_for(designs: Sequence[Design], needed: Sequence[int], left: float) -> float:
    """How long the first design may take, with so many seconds left for all of them.

    needed: rounds that each has to have. Its share is proportional to the time of its minimum
    rounds. It gets at least the rounds that it needs, if the others can have theirs too; if not,
    each of their cases is reserved one sample. Its own cases get one sample each, if most of that
    time is left.
    """
    first, later = designs[0], designs[1:]
    once = SLACK * once_seconds(first)
    least = once if left >= MIN_SHARE * once else left
    share = left * min_seconds(first) / (sum(map(min_seconds, designs)) or 1.0)
    need, *others = (SLACK * n * round_seconds(d) for d, n in zip(designs, needed, strict=True))
    if (free := left - sum(others)) >= need:
        return max(min(max(share, need), free), least)
    return max(min(share, left - once_each(later)), least)


def at_pace(d: Design, took: float, estimated: float) -> Design:
    """The design with its cases' times as they are where others took `took`, not `estimated`."""
    pace = min(max(took / estimated, 1.0), SLOWEST_PACE) if estimated else 1.0
    return replace(d, seconds={case: pace * seconds for case, seconds in d.seconds.items()})


def kept_for_ceilings(ceilings: Sequence[Design], left: float) -> float:
    """Seconds that what was asked for leaves to probes that bound its numbers."""
    return min(SLACK * once_each(ceilings), CEILING_SHARE * left)


def longest_sample(estimate: float, left: float, reserve: float) -> float:
    """Seconds after which a case is stopped, if others still need `reserve` of those left."""
    return max(PATIENCE * estimate, left - reserve)


def once_each(designs: Iterable[Design]) -> float:
    """Approximate seconds to run each case of these once."""
    return sum(map(once_seconds, designs))
