"""Where a number lies among those of other runs of its kind: a description, and no verdict.

Of n + 1 runs that are alike one is the worst by chance, each with the same probability. So a number
that is worse than those of n others is no evidence alone: it happens to 1 of n + 1 numbers. Below
MIN_OTHERS it happens so often that a range says nothing. What judges is a baseline
(`plan._baseline_numbers`), whose rate of false alarms is known.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import lower_is_better

MIN_OTHERS = 5
"""With four others, one number in five is the worst of all by chance."""

PlaceAnswer = Literal["within", "worse", "better"]


@dataclass(frozen=True, kw_only=True)
class HistoryPoint:
    """A number of a run. started: ISO 8601 in UTC."""

    run: str
    machine: str
    started: str
    value: float
    trusted: bool = True


@dataclass(frozen=True, kw_only=True)
class NumberPlace:
    """A number among others of its kind. label: of the headline.

    median, low, high: of the others, of `runs` runs on `machines` machines. answer: within their
    range, worse than all of them, or better. history: of all with this one, oldest first; marked
    ones that were left out of the range, too.
    """

    label: str
    metric: str
    unit: str
    own: HistoryPoint
    median: float
    low: float
    high: float
    runs: int
    machines: int
    answer: PlaceAnswer
    history: tuple[HistoryPoint, ...]


def place_among(
    label: str, metric: str, unit: str, own: HistoryPoint, others: Sequence[HistoryPoint]
) -> NumberPlace | None:
    """None with fewer than MIN_OTHERS. Numbers that are not trusted count only without enough."""
    finite = [each for each in others if math.isfinite(each.value)]
    trusted = [each for each in finite if each.trusted]
    used = trusted if len(trusted) >= MIN_OTHERS else finite
    if len(used) < MIN_OTHERS or not math.isfinite(own.value):
        return None
    values = [each.value for each in used]
    return NumberPlace(
        label=label,
        metric=metric,
        unit=unit,
        own=own,
        median=median(values),
        low=min(values),
        high=max(values),
        runs=len(used),
        machines=len({each.machine for each in used}),
        answer=_answer(own.value, values, unit),
        history=tuple(sorted((*finite, own), key=lambda each: (each.started, each.run))),
    )


def _answer(value: float, others: Sequence[float], unit: str) -> PlaceAnswer:
    if min(others) <= value <= max(others):
        return "within"
    return "worse" if (value > max(others)) == lower_is_better(unit) else "better"
