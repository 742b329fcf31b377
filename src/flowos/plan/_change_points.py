"""Finds when a number of a machine changed, in runs one after the other.

All places between two runs, three from either end, are tested by Student's t between the runs
before and those after, and the best one counts; its chance is multiplied by the number of places
(Worsley 1979, with Bonferroni's bound). If it is a change, the runs on both sides are searched in
the same way (binary segmentation: Scott and Knott 1974; Vostrikova 1981). The medians have to
change, too, by half as much as the means, so that a single odd run is no change.

Of many numbers those count as changed of which 5 % are expected to be false (Benjamini and Hochberg
1995; it holds for numbers that rise and fall together, Benjamini and Yekutieli 2001). If nothing
changed at all, any number is called changed with that probability, at most.

E-divisive (Matteson and James 2014), which MongoDB uses, draws permutations for its chances: a
thousand for each place and number take minutes here, and do not reach the small chances that many
numbers require. Pettitt's test (1979) of ranks cannot find a change among the last few runs.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median

from flowos._dataclasses import dataclass
from flowos.model import Case
from flowos.plan._intervals import student_quantile, student_tail
from flowos.plan._repeated import (
    RESOLUTION,
    MachineRun,
    RepeatedNumber,
    at_goodness,
    repeated,
)

CHANGE_ERROR = 0.05
MIN_SIDE = 3
MIN_HISTORY = 2 * MIN_SIDE
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberChange:
    """Between which two runs a number changed, and by how much.

    last, first: ids of the last run before it and of the first after it. before, after: geometric
    means of the runs from the change before it, and to the next one. ratio: goodness after over
    before, below 1 if it became worse; low, high: its 95 % interval, if the place is right.
    chance: probability of such a change of this number by chance.
    """

    last: str
    first: str
    before: float
    after: float
    ratio: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberHistory:
    """A number in each run that has it, with its changes in the order of time.

    changed_at: index of the first value after each change. judged: not if a value is not above 0.
    """

    case: Case
    metric: str
    unit: str
    values: tuple[float, ...]
    changed_at: tuple[int, ...]
    changes: tuple[NumberChange, ...]
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Break:
    """at: index of the first value after it. chance: of one like it anywhere among the values."""

    at: int
    chance: float


def number_changes(
    runs: Sequence[MachineRun], *, error: float = CHANGE_ERROR
) -> tuple[NumberHistory, ...]:
    """Of the numbers of runs of one machine, oldest first, when they changed.

    error: probability of any change if nothing changed. Numbers that fewer than six runs have are
    left out.
    """
    numbers, others = repeated(
        runs, of=lambda run: run.numbers.run, min_runs=MIN_HISTORY, quiet=MIN_HISTORY
    )
    breaks = [best_break(n.goodness, n.min_deviation) for n in numbers]
    limit = _limit([each.chance for each in breaks], error)
    return (*(_history(number, limit) for number in numbers), *map(_unjudged, others))


def _unjudged(number: RepeatedNumber) -> NumberHistory:
    return NumberHistory(
        case=number.case,
        metric=number.metric,
        unit=number.unit,
        values=tuple(m.value for _, m in number.found),
        changed_at=(),
        changes=(),
        judged=False,
    )


def _limit(chances: Sequence[float], error: float) -> float:
    """The largest chance that counts (Benjamini and Hochberg); below 0 if none does."""
    ordered = sorted(chances)
    steps = (error * (at + 1) / len(ordered) for at in range(len(ordered)))
    return max((step for c, step in zip(ordered, steps, strict=True) if c <= step), default=-1.0)


def change_places(values: Sequence[float], limit: float, min_deviation: float) -> list[Break]:
    """All changes with a chance up to `limit`, in order, sides of a change searched again."""
    found = best_break(values, min_deviation)
    if found.chance > limit:
        return []
    after = change_places(values[found.at :], limit, min_deviation)
    return [
        *change_places(values[: found.at], limit, min_deviation),
        found,
        *(Break(each.at + found.at, each.chance) for each in after),
    ]


def best_break(values: Sequence[float], min_deviation: float = 1e-9) -> Break:
    """Where the values before and after differ most; of fewer than six the chance is 1."""
    count = len(values)
    if count < MIN_HISTORY:
        return Break(0, 1.0)
    centre = fmean(values)
    sums = list(accumulate(value - centre for value in values))
    squares = sum((value - centre) ** 2 for value in values)
    explained = {
        at: sums[at - 1] ** 2 * count / (at * (count - at))
        for at in range(MIN_SIDE, count - MIN_SIDE + 1)
    }
    at = max(explained, key=explained.__getitem__)
    freedom = count - 2
    rest = max((squares - explained[at]) / freedom, min_deviation**2)
    t = math.sqrt(explained[at] / rest)
    if not _is_step(values[:at], values[at:]):
        return Break(at, 1.0)
    return Break(at, min(1.0, len(explained) * 2 * student_tail(t, freedom)))


def _is_step(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the medians confirm the means, and the step is large enough to matter."""
    step = fmean(after) - fmean(before)
    confirmed = (median(after) - median(before)) * math.copysign(1.0, step) >= abs(step) / 2
    return confirmed and abs(step) > math.log1p(RESOLUTION)


def _history(number: RepeatedNumber, limit: float) -> NumberHistory:
    breaks = change_places(number.goodness, limit, number.min_deviation)
    return NumberHistory(
        case=number.case,
        metric=number.metric,
        unit=number.unit,
        values=tuple(m.value for _, m in number.found),
        changed_at=tuple(each.at for each in breaks),
        changes=tuple(_changes(number, breaks)),
    )


def _changes(number: RepeatedNumber, breaks: Sequence[Break]) -> Iterator[NumberChange]:
    ends = [0, *(each.at for each in breaks), len(number.found)]
    sides = [number.goodness[start:end] for start, end in pairwise(ends)]
    for each, (before, after) in zip(breaks, pairwise(sides), strict=True):
        step = fmean(after) - fmean(before)
        reach = _reach(before, after, number.min_deviation)
        yield NumberChange(
            last=number.found[each.at - 1][0].numbers.run,
            first=number.found[each.at][0].numbers.run,
            before=at_goodness(fmean(before), number.unit),
            after=at_goodness(fmean(after), number.unit),
            ratio=math.exp(step),
            low=math.exp(step - reach),
            high=math.exp(step + reach),
            chance=each.chance,
        )


def _reach(before: Sequence[float], after: Sequence[float], min_deviation: float) -> float:
    """Half of Student's interval of the difference of two means."""
    squares = sum((v - fmean(side)) ** 2 for side in (before, after) for v in side)
    freedom = len(before) + len(after) - 2
    deviation = max(math.sqrt(squares / freedom), min_deviation)
    return (
        student_quantile(_LEVEL, freedom) * deviation * math.sqrt(1 / len(before) + 1 / len(after))
    )
