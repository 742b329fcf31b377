"""Decides whether numbers come from one regime of the machine or from two.

The numbers are split once, at the best fit of two groups (two means on logarithms). They are two
regimes when both groups are large, the step between them is large, and the step is large relative
to the spread inside the groups. The bounds come from simulation (`benchmarks/aa.py`).
"""

import math
from collections.abc import Iterable
from itertools import accumulate
from statistics import median

from flowos._dataclasses import dataclass

MIN_VALUES = 8
MIN_SHARE = 0.2
MIN_STEP = 1.1
MIN_SEPARATION = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Regimes:
    """Medians of the lower and the upper group, and how many numbers each has."""

    low: float
    high: float
    low_count: int
    high_count: int

    @property
    def step(self) -> float:
        return self.high / self.low

    def __str__(self) -> str:
        share = self.high_count / (self.low_count + self.high_count)
        return f"two regimes: {share:.0%} of the values lie {self.step:.2f}x above the others"


def positive(values: Iterable[float]) -> tuple[float, ...]:
    """The finite values above 0, in order."""
    return tuple(v for v in values if 0 < v < math.inf)


def regimes(values: Iterable[float]) -> Regimes | None:
    """The two regimes of the values, or None. Values that are not positive are ignored."""
    ordered = sorted(positive(values))
    if len(ordered) < MIN_VALUES:
        return None
    middle = ordered[len(ordered) // 2]
    logs = [_log(v, middle) for v in ordered]
    cut, inside = _best_cut(logs)
    low, high = ordered[:cut], ordered[cut:]
    step = median(high) / median(low)
    enough = min(len(low), len(high)) >= MIN_SHARE * len(ordered)
    if not enough or step < MIN_STEP or math.log(step) < MIN_SEPARATION * inside:
        return None
    return Regimes(low=median(low), high=median(high), low_count=len(low), high_count=len(high))


def _log(value: float, unit: float) -> float:
    """In a unit: rounded alike, whatever the scale of all values is."""
    ratio = value / unit
    return math.log(ratio) if 0 < ratio < math.inf else math.log(value) - math.log(unit)


def _best_cut(ordered: list[float]) -> tuple[int, float]:
    """Index of the cut with the smallest spread inside both groups, and that standard deviation.

    ordered: around 0, so that squares of large numbers are not subtracted.
    """
    sums = list(accumulate(ordered, initial=0.0))
    squares = list(accumulate((v * v for v in ordered), initial=0.0))

    def inside(first: int, last: int) -> float:
        total = sums[last] - sums[first]
        return squares[last] - squares[first] - total * total / (last - first)

    count = len(ordered)
    spread, cut = min((inside(0, k) + inside(k, count), k) for k in range(1, count))
    return cut, math.sqrt(max(spread, 0.0) / (count - 2))
