"""How the time of a run is shared out.

With one environment each probe is measured for its share, one after the other, so that each has a
whole round before any has a second (`seconds_for`). With several, rounds of the probes alternate,
so that each comparison spans the whole time: see `_session`.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from flowos.model import Design, Effort, Unmeasured

ONE = {"quick": 52.0, "normal": 165.0, "full": 3600.0}
SEVERAL = {"quick": 600.0, "normal": 1800.0, "full": 7200.0}
"""Budget of measuring, without facts, builds and the report. See `Sampler` for its end."""

SLACK, MIN_SHARE = 1.1, 0.6
"""A case may take SLACK times its estimate; none is started with less than MIN_SHARE of it left."""


OUT_OF_TIME = Unmeasured(
    reason="the time was out before its turn",
    remedy="give more time, as in `flowos measure --minutes 10`",
)


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


def least_seconds(d: Design) -> float:
    """Approximate time of its minimum rounds."""
    return d.min_rounds * round_seconds(d)


def as_often_as_time_allows(d: Design) -> Design:
    """The design without a limit of rounds if cases are compared: more narrow the intervals."""
    return replace(d, min_rounds=sys.maxsize if d.turns > 1 else d.min_rounds)


def seconds_for(designs: Sequence[Design], left: float) -> float:
    """How long the first design may take, with so many seconds left for all of them.

    Its share is proportional to the time of its minimum rounds. It gets at least a whole round, as
    fewer samples show no factor, if the others can have one too; if not, each of their cases is
    reserved one sample. Its own cases get one sample each, if most of that time is left.
    """
    first, later = designs[0], designs[1:]
    once, whole_round = SLACK * once_seconds(first), SLACK * round_seconds(first)
    least = once if left >= MIN_SHARE * once else left
    share = left * least_seconds(first) / (sum(map(least_seconds, designs)) or 1.0)
    without_rounds = left - SLACK * sum(map(round_seconds, later))
    if without_rounds >= whole_round:
        return max(min(max(share, whole_round), without_rounds), least)
    return max(min(share, left - once_each(later)), least)


def once_each(designs: Iterable[Design]) -> float:
    """Approximate seconds to run each case of these once."""
    return sum(map(once_seconds, designs))
