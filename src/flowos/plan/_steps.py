"""Finds the falls of a working-set curve: sizes and rates of the caches, and of memory.

A larger working set cannot be served faster than a smaller one: an apparent gain is a disturbed
measurement or the overhead of short loops. The curve is therefore read through its upper envelope.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from statistics import median

from flowos._dataclasses import dataclass

FLAT = 1.15
"""Maximum ratio of a plateau's highest rate to its lowest."""
DISTINCT = 1.2
"""Minimum ratio of a plateau's rate to that of the next."""
MIN_WIDTH = 1.9
"""Minimum ratio of a plateau's last size to its first, except for the plateau at the left edge."""
FALLEN = 0.25
"""A cache ends where the rate has fallen by this part of the way to the next plateau (logarithmic).

Just beyond the cache's size most accesses still hit, so the rate falls slowly.
"""


@dataclass(frozen=True, slots=True)
class Plateau:
    """Sizes (bytes) over which the median rate (byte/s) is nearly constant."""

    first_bytes: float
    last_bytes: float
    rate: float


@dataclass(frozen=True, slots=True)
class CacheStep:
    """Size (bytes) at which the rate falls from one plateau to the next."""

    size_bytes: float
    above: float
    below: float


def find_plateaus(sizes: Sequence[float], rates: Sequence[float]) -> tuple[Plateau, ...]:
    """Plateaus from the smallest working set to the largest.

    sizes: rising, bytes. rates: byte/s, above 0. Raises ValueError for anything else.
    """
    _check(sizes, rates)
    upper = _envelope(rates)
    found: list[tuple[int, int]] = []
    first = 0
    while first < len(sizes):
        last = first
        while last + 1 < len(sizes) and upper[first] <= FLAT * upper[last + 1]:
            last += 1
        if first == 0 or sizes[last] >= MIN_WIDTH * sizes[first]:
            found.append((first, last))
            first = last
        first += 1
    return tuple(_plateau(sizes, upper, ends) for ends in _merged(found, upper))


def find_steps(sizes: Sequence[float], rates: Sequence[float]) -> tuple[CacheStep, ...]:
    """Where each cache ends, from the smallest to the largest. Arguments as in find_plateaus."""
    plateaus = find_plateaus(sizes, rates)
    upper = _envelope(rates)
    return tuple(
        CacheStep(_fall(sizes, upper, before, after), before.rate, after.rate)
        for before, after in pairwise(plateaus)
    )


def memory_plateau(sizes: Sequence[float], rates: Sequence[float]) -> Plateau | None:
    """The last plateau; None if the curve ends before it reaches memory, or never falls."""
    plateaus = find_plateaus(sizes, rates)
    reached = len(plateaus) > 1 and plateaus[-1].last_bytes == sizes[-1]
    return plateaus[-1] if reached else None


def _check(sizes: Sequence[float], rates: Sequence[float]) -> None:
    if not sizes or len(sizes) != len(rates):
        raise ValueError(f"a curve needs one rate per size: {len(sizes)} sizes, {len(rates)} rates")
    if sizes[0] <= 0 or any(b <= a for a, b in pairwise(sizes)):
        raise ValueError("the sizes of a curve must rise from above 0")
    if min(rates) <= 0:
        raise ValueError(f"the rates of a curve must be above 0: {min(rates)}")


def _envelope(rates: Sequence[float]) -> list[float]:
    """Highest rate of this and all larger sizes, after a median of three against spikes.

    The first value stays as it is: it may be the only size in the first cache.
    """
    smooth = (median(rates[i - 1 : i + 2]) for i in range(1, len(rates) - 1))
    upper = [rates[0], *smooth, median(rates[-3:])][: len(rates)]
    for i in range(len(upper) - 2, -1, -1):
        upper[i] = max(upper[i], upper[i + 1])
    return upper


def _merged(found: list[tuple[int, int]], upper: list[float]) -> list[tuple[int, int]]:
    """Merges neighbours whose rates are not distinct."""
    merged = found[:1]
    for first, last in found[1:]:
        before = merged[-1]
        if _level(upper, before) < DISTINCT * _level(upper, (first, last)):
            merged[-1] = (before[0], last)
        else:
            merged.append((first, last))
    return merged


def _level(upper: list[float], ends: tuple[int, int]) -> float:
    return median(upper[ends[0] : ends[1] + 1])


def _plateau(sizes: Sequence[float], upper: list[float], ends: tuple[int, int]) -> Plateau:
    return Plateau(sizes[ends[0]], sizes[ends[1]], _level(upper, ends))


def _fall(sizes: Sequence[float], upper: list[float], before: Plateau, after: Plateau) -> float:
    """Size at which the envelope has FALLEN, interpolated between two measured sizes."""
    goal = log(before.rate) * (1 - FALLEN) + log(after.rate) * FALLEN
    i = next(i for i, rate in enumerate(upper) if log(rate) < goal)
    high, low = log(upper[i - 1]), log(upper[i])
    part = (high - goal) / (high - low)
    return exp(log(sizes[i - 1]) * (1 - part) + log(sizes[i]) * part)
