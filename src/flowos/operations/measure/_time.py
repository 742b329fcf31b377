"""How the time of a run is shared out.

With one environment each probe is measured for its share, one after the other, so that a whole
round of each comes before a second of any (`seconds_for`). With several, rounds take turns by
probe, so that each comparison sees the whole time: see `_session`.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from flowos.model import Design, Effort

ONE = {"quick": 52.0, "normal": 165.0, "full": 3600.0}
SEVERAL = {"quick": 600.0, "normal": 1800.0, "full": 7200.0}
"""What measuring may take; facts, builds and the report come on top. See `Sampler` for the end."""

SLACK, MIN_SHARE = 1.1, 0.6
"""A case may take so much of what was thought; with less of its time than this, none is begun."""


def budget_seconds(effort: Effort, environments: int) -> float:
    return (SEVERAL if environments > 1 else ONE)[effort]


def overhead_seconds(environments: int) -> float:
    """About what entering an environment and looking at the machine costs beside a case."""
    return 0.5 if environments > 1 else 0.2


def once_seconds(d: Design) -> float:
    """About what each case once takes."""
    return sum(d.seconds.values())


def round_seconds(d: Design) -> float:
    """About what a whole round takes."""
    return d.turns * once_seconds(d)


def least_seconds(d: Design) -> float:
    """About what its least rounds take."""
    return d.min_rounds * round_seconds(d)


def as_often_as_time_allows(d: Design) -> Design:
    """The same, with rounds until the time is out where cases are compared: more tell more."""
    return replace(d, min_rounds=sys.maxsize if d.turns > 1 else d.min_rounds)


def seconds_for(designs: Sequence[Design], left: float) -> float:
    """How long the first of these may take, with so many seconds left for all of them.

    It has its share by what its rounds take, and first of all a whole round, as no factor is told
    from less, if the others can have one too; if not, they keep what each of their cases takes
    once. What its own cases take once it has, if most of it is left.
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
    """About what each case of these takes once, in seconds."""
    return sum(map(once_seconds, designs))
