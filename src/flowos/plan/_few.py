"""Decides from few rounds when a factor is too large to be noise.

Noise between turns has two sources: the two regimes of a machine, up to a factor of 2.5 apart, and
the differences between turns of the same case in this run. If both sides of a round fell into
different regimes each time, a factor of 2.5 could appear without any deviation inside a case; a
factor of 3 could not. A run with many cases shows how far apart turns of one case lie; nine in ten
rounds count. A factor up to 3 must exceed five times that, and 1.25: rhythms and regimes may leave
the turns of a case alike and those of two cases apart. Beyond 3, twice is enough. The answer is
never 'equal'.
"""

import math
from collections.abc import Sequence
from statistics import median, quantiles

from flowos._dataclasses import dataclass
from flowos.plan._intervals import Interval
from flowos.plan._pairs import Pair, Round

DECIDED_BY_FEW = (
    "decided from few rounds: no noise between turns of one case explains such a factor"
)
ANY_NOISE = math.log(3)
MIN_FACTOR = math.log(1.25)
SPREADS, SPREADS_BEYOND = 5.0, 2.0
"""So often what turns of one case lie apart: up to ANY_NOISE, and beyond it."""
MANY = 8
"""Rounds of different cases; flickering regimes leave all of them undisturbed once in 256 runs."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Spread between the turns of one case inside a round.

    rounds: number of rounds examined. usual: spread that nine in ten of them do not exceed.
    """

    rounds: int
    usual: float


def noise_of(pairs: Sequence[Pair]) -> Noise:
    """Noise over all cases of a metric in a run.

    Rounds side by side are left out: their processes differ between rounds only.
    """
    inner = [r.inner for pair in pairs for r in pair.rounds if not r.interleaved]
    if len(inner) < MANY:
        return Noise(len(inner), 0.0)
    return Noise(len(inner), quantiles(inner, n=10, method="inclusive")[-1])


def beyond_noise(rounds: Sequence[Round], noise: Noise) -> Interval:
    """Interval around the centre, as wide as noise can be; unbounded if noise can explain it all.

    Every difference between neighbouring turns must exceed the noise, in the same direction.
    """
    if not rounds:
        return Interval(math.nan, -math.inf, math.inf)
    differences = [d for r in rounds for d in r.differences]
    centre = median(r.log_ratio for r in rounds)
    inner = max(r.inner for r in rounds)
    reach = _reach(max(inner, noise.usual), ANY_NOISE if noise.rounds < MANY else MIN_FACTOR)
    if min(differences) > reach or max(differences) < -reach:
        return Interval(centre, centre - reach, centre + reach)
    return Interval(centre, -math.inf, math.inf)


def _reach(spread: float, floor: float) -> float:
    return max(floor, min(SPREADS * spread, max(ANY_NOISE, SPREADS_BEYOND * spread)))
