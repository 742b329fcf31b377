"""Intervals for a few paired differences, heavy tails allowed; and for shares.

From eight values on: Hodges-Lehmann estimate and the interval of Wilcoxon's signed-rank test, exact
for every distribution that is symmetric about its centre. With fewer values the test cannot reach
the required levels, so Student's t is used.
Source: Hollander, Wolfe, Chicken: Nonparametric Statistical Methods (2014), sections 3.1 to 3.3.
"""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from statistics import fmean, median, stdev

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimate of a centre, with the bounds of its confidence interval."""

    centre: float
    low: float
    high: float


def interval(values: Sequence[float], level: float, min_deviation: float = 0.0) -> Interval:
    """Centre of at least two values, with its interval at confidence `level`, such as 0.95.

    min_deviation: a standard deviation known from other data. It keeps the t interval of a few
    values that agree by chance from being too narrow.
    """
    depth = _signed_rank_depth(len(values), 1 - level)
    if depth is None:
        return student(values, level, min_deviation)
    means = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    return Interval(median(means), means[depth], means[-1 - depth])


def student(values: Sequence[float], level: float, min_deviation: float = 0.0) -> Interval:
    """Mean of at least two values, with Student's interval."""
    centre = fmean(values)
    deviation = max(_deviation(tuple(values)), min_deviation)
    reach = student_quantile(level, len(values) - 1) * deviation / math.sqrt(len(values))
    return Interval(centre, centre - reach, centre + reach)


@lru_cache(maxsize=16)
def _deviation(values: tuple[float, ...]) -> float:
    """Kept, as one comparison needs it at several levels: it computes with exact fractions."""
    return stdev(values)


@cache
def _signed_rank_depth(count: int, error: float) -> int | None:
    """Number of pairwise means outside the interval on each side; None if out of reach."""
    ways = [1]
    for rank in range(1, count + 1):
        ways = [
            (ways[i] if i < len(ways) else 0) + (ways[i - rank] if i >= rank else 0)
            for i in range(len(ways) + rank)
        ]
    rejected = sum(2 * tail <= error * 2**count for tail in accumulate(ways))
    return rejected - 1 if rejected else None


@cache
def student_quantile(level: float, freedom: int) -> float:
    """t with P(|T| < t) = level, by bisection."""
    low, high = 0.0, 1.0
    while _student_within(high, freedom) < level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _student_within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return high


def student_tail(t: float, freedom: int) -> float:
    """P(T > t), for t above 0; 1e-16 off at most."""
    return max(0.0, 1 - _student_within(t, freedom)) / 2


def _student_within(t: float, freedom: int) -> float:
    """P(|T| < t). Source: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def wilson(hits: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Score interval of a share (Wilson 1927), 95 % by default."""
    share, weight = hits / trials, 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / weight
    reach = z / weight * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - reach), min(1.0, centre + reach)
