"""A factor that no noise explains, told from fewer rounds than an interval needs.

Noise between turns has no more than this to work with: the two regimes of a machine, which lie up
to a factor of 2.5 apart, and what turns of the same case differ by in this run. With both sides of
a round in different regimes each time, a factor of 2.5 and no deviation inside any case could be
seen; three is beyond it. A run that looked at many cases has seen whether there are regimes: where
nine in ten of them agree with themselves, from the first turn to the last of a round, a factor has
to be beyond five times that deviation, and beyond 1.25. Such an answer is never 'equal'.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from flowos.plan._intervals import Interval
from flowos.plan._pairs import Pair, Round

TOLD_BY_FEW = "told from few rounds: no noise between turns of one case explains such a factor"
ANY_NOISE = math.log(3)
MIN_FACTOR = math.log(1.25)
DEVIATIONS = 5.0
MANY = 8
"""Rounds of different cases: regimes that flicker leave all of them alone once in 256 runs."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How far the turns of one case lie apart inside a round, in so many rounds of cases.

    usual: what nine in ten do not exceed.
    """

    rounds: int
    usual: float


def noise_of(pairs: Sequence[Pair]) -> Noise:
    """Over all cases of a metric in a run; side by side, processes differ between rounds only."""
    inner = [r.inner for pair in pairs for r in pair.rounds if not r.in_turns]
    if len(inner) < MANY:
        return Noise(len(inner), 0.0)
    return Noise(len(inner), quantiles(inner, n=10, method="inclusive")[-1])


def beyond_noise(rounds: Sequence[Round], noise: Noise) -> Interval:
    """The centre and as much around it as noise could be; unbounded where it could be all.

    Every difference between neighbouring turns must lie beyond noise, to the same side.
    """
    differences = [d for r in rounds for d in r.differences]
    centre = median(r.log_ratio for r in rounds) if rounds else math.nan
    inner = max((r.inner for r in rounds), default=0.0)
    floor = ANY_NOISE if noise.rounds < MANY else max(MIN_FACTOR, DEVIATIONS * noise.usual)
    reach = max(floor, DEVIATIONS * inner)
    least = min((abs(d) for d in differences), default=0.0)
    one_sided = abs(sum(math.copysign(1, d) for d in differences)) == len(differences)
    if one_sided and least > reach:
        return Interval(centre, centre - reach, centre + reach)
    return Interval(centre, -math.inf, math.inf)
