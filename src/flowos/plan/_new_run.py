"""Where a new run is expected, from earlier ones of one machine or of several of a kind.

The bound is Student's prediction bound for one further value (Hahn and Meeker: Statistical
Intervals, 1991, section 4.7). It is around the median, whose variance is at most pi/2 times that of
the mean, so that one bad run does not move it; this makes the bound a little wider than it needs to
be. Runs of a machine scatter, and machines differ: a new run of a new machine varies by both. Each
of the two variances has a bound by its own degrees of freedom, and the squares of these are added,
as in Graybill and Wang (1980). Satterthwaite's degrees of freedom of their sum were tried: four
machines with three runs each gave three alarms in place of one at an error of 0.1 %.
"""

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from flowos._dataclasses import dataclass
from flowos.plan._intervals import student_quantile

_OF_MEDIAN = math.pi / 2
"""Variance of a median over that of a mean of normal values, at most."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """Expected centre of a new run, and its standard deviation around it.

    parts: standard deviations that add up to its distance from the estimated centre, each with the
    degrees of freedom that it is known to.
    """

    centre: float
    deviation: float
    parts: tuple[tuple[float, int], ...]

    def reach(self, error: float) -> float:
        """How far below the centre a new run lies with this probability, 0 to 0.5, at most."""
        return math.hypot(*(student_quantile(1 - 2 * error, f) * part for part, f in self.parts))


def new_run(groups: Sequence[Sequence[float]], min_deviation: float) -> NewRun:
    """From the values of each machine: two at least, of one machine or of two.

    min_deviation: known from other data; it keeps values that agree by chance from being taken
    for exact.
    """
    if len(groups) == 1:
        (values,) = groups
        deviation = max(stdev(values), min_deviation)
        return _around(median(values), deviation, len(values))
    means = [fmean(values) for values in groups]
    alike = sum(map(len, groups)) - len(groups)
    squares = sum((v - m) ** 2 for g, m in zip(groups, means, strict=True) for v in g)
    in_means = fmean(1 / len(values) for values in groups)
    rest = (1 - in_means) * squares / alike if alike else 0.0
    between = max(stdev(means), math.sqrt(max(0.0, min_deviation**2 - rest)))
    found = _around(median(means), between, len(groups))
    more = ((math.sqrt(rest), alike),) if alike else ()
    return NewRun(found.centre, math.hypot(between, math.sqrt(rest)), (*found.parts, *more))


def with_runs(deviation: float, runs: int) -> NewRun:
    """What so many runs, of one machine or of one each, would say that scatter by this."""
    return _around(0.0, deviation, runs)


def _around(centre: float, deviation: float, count: int) -> NewRun:
    part = deviation * math.sqrt(1 + _OF_MEDIAN / count)
    return NewRun(centre, deviation, ((part, count - 1),))
