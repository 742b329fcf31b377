"""Axes: positions of values, and choice of ticks."""

import math

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values (low..high) to pixels (start..end), linearly or logarithmically."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def even_ticks(low: float, high: float, max_ticks: int = 6) -> tuple[float, ...]:
    """At most `max_ticks` round values (1, 2, 2.5 or 5 times a power of ten) within low..high."""
    rough = (high - low) / max_ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(i * step for i in range(first, last + 1))


def decade_ticks(low: float, high: float, max_ticks: int = 7) -> tuple[float, ...]:
    """Powers of ten within low..high, thinned; with 2 and 5 between if there are few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 2:
        found = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
        return tuple(v for v in found if low * 0.999 <= v <= high * 1.001)
    step = -(-(last - first + 1) // max_ticks)
    return tuple(10.0**e for e in range(first, last + 1, step))


def binary_ticks(low: float, high: float, max_ticks: int = 6) -> tuple[float, ...]:
    """Powers of two within low..high, evenly thinned."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // max_ticks))
    return tuple(2.0**e for e in range(first, last + 1, step))


def apart(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """The same positions in order, moved as little as needed to be `gap` apart.

    places: ascending. They stay at or below `high`, and at or above `low` if they fit.
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, low, moved[-1] + gap if moved else low))
    for i in range(len(moved) - 1, -1, -1):
        limit = high if i == len(moved) - 1 else moved[i + 1] - gap
        moved[i] = min(moved[i], limit)
    return moved
