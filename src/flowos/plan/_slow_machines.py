"""Finds which of several machines of one kind are slow.

Each machine is compared with all others: Student's test of whether it is of their distribution,
which is Grubbs' (1950) test, and leaves one out as SuperBench (Xiong et al. 2024) does. The slowest
is then taken away and the next one tested with the rest, up to a quarter of all, so that slow
machines do not hide each other; as many are slow as the last test says that finds one (generalised
ESD: Rosner 1983). Then those that are left are tested in the same way. Only the slow side is
tested.

The probability that any machine is called slow though it is like the others is at most `error` for
all numbers together: it is shared among numbers, machines and tests (Bonferroni), whatever depends
on what. Assumed: machines scatter normally. Median and MAD find at most as many slow ones at the
same rate, and their limits for few machines are known by simulation only.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from flowos._dataclasses import dataclass, replace
from flowos.model import Case, UnjudgedNumber
from flowos.plan._intervals import student_quantile, student_tail
from flowos.plan._repeated import (
    RESOLUTION,
    MachineRun,
    RepeatedNumber,
    at_goodness,
    repeated,
    unjudged,
)

SLOW_ERROR = 0.05
MIN_MACHINES = 3
_SHARE = 0.25
"""Of all machines this share is tested at once: of four or fewer one."""

_FIRST = 0.8
"""Share of the error that the test of the slowest machine gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowMachine:
    """A machine and the number in which it is slow.

    value: its own. others: median of the machines that are not slow in it. ratio: its goodness over
    theirs, below 1. chance: probability, for all numbers and machines together, of one as slow if
    all are alike. of: number of machines.
    """

    machine: str
    case: Case
    metric: str
    unit: str
    value: float
    others: float
    ratio: float
    chance: float
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowLimit:
    """From which ratio on a machine would have been called slow in a number in which none is.

    ratio: its goodness over the mean of the others; below 1.
    """

    case: Case
    metric: str
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowMachines:
    """machines: that were compared. numbers: how many of each were, unjudged: which others they
    have. slow: of each number the slowest first. limits: of the others, as what is slow may hide
    one more. by_run: whether each run counts as a machine, as all are of one name."""

    machines: tuple[str, ...]
    numbers: int
    slow: tuple[SlowMachine, ...]
    limits: tuple[SlowLimit, ...] = ()
    by_run: bool = False
    unjudged: tuple[UnjudgedNumber, ...] = ()


def slow_machines(runs: Sequence[MachineRun], *, error: float = SLOW_ERROR) -> SlowMachines:
    """Compare machines of one kind, at least three.

    Several runs of a machine count as their mean; if all are of one name, each is a machine of its
    own. error: probability of any if all are alike.
    """
    by_run = len({run.machine for run in runs}) == 1
    runs = [replace(run, machine=run.numbers.run) for run in runs] if by_run else runs
    numbers, others = repeated(
        runs, of=lambda run: run.machine, min_runs=MIN_MACHINES, quiet=MIN_MACHINES
    )
    return SlowMachines(
        machines=tuple(dict.fromkeys(run.machine for run in runs)),
        numbers=len(numbers),
        slow=tuple(slow for n in numbers for slow in _of_number(n, error, len(numbers))),
        limits=tuple(limit for n in numbers for limit in _limits(n, error / len(numbers))),
        by_run=by_run,
        unjudged=unjudged(others),
    )


def _of_number(number: RepeatedNumber, error: float, numbers: int) -> Iterator[SlowMachine]:
    machines = number.machines
    means = [fmean(values) for values in number.by_machine()]
    slow = slow_ones(means, error / numbers, number.min_deviation)
    rest = median(mean for at, mean in enumerate(means) if at not in slow)
    for at, chance in slow.items():
        if means[at] - rest < -math.log1p(RESOLUTION):
            yield SlowMachine(
                machine=machines[at],
                case=number.case,
                metric=number.metric,
                unit=number.unit,
                value=at_goodness(means[at], number.unit),
                others=at_goodness(rest, number.unit),
                ratio=math.exp(means[at] - rest),
                chance=min(1.0, chance * numbers),
                of=len(means),
            )


def _limits(number: RepeatedNumber, error: float) -> Iterator[SlowLimit]:
    means = [fmean(values) for values in number.by_machine()]
    if not slow_ones(means, error, number.min_deviation):
        below = max(slow_reach(means, error, number.min_deviation), math.log1p(RESOLUTION))
        yield SlowLimit(case=number.case, metric=number.metric, ratio=math.exp(-below))


def slow_reach(values: Sequence[float], error: float, min_deviation: float = 1e-9) -> float:
    """How far below the mean of the others the lowest of at least three values is too low.

    error: as of `slow_ones`, which this inverts.
    """
    _, *others = sorted(values)
    chance = error * _weight(0, _tests(len(values))) / len(values)
    reach = student_quantile(1 - 2 * chance, len(others) - 1)
    return reach * _deviation_of_one_more(others, min_deviation)


def slow_ones(
    values: Sequence[float], error: float, min_deviation: float = 1e-9
) -> dict[int, float]:
    """Which of several values are too low, the lowest first, with the chance of such a one.

    error: probability of any, if all are of one normal distribution. The chance is of any, too.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    slow: dict[int, float] = {}
    while len(rest := order[len(slow) :]) >= MIN_MACHINES:
        found = _lowest([values[at] for at in rest], error, min_deviation)
        if not found:
            break
        slow |= dict(zip(rest, found, strict=False))
    return slow


def _lowest(ordered: Sequence[float], error: float, min_deviation: float) -> list[float]:
    """The chance of each of the lowest values that do not belong to the others."""
    tests = _tests(len(ordered))
    chances = [
        _chance(ordered[at], ordered[at + 1 :], min_deviation) / _weight(at, tests)
        for at in range(tests)
    ]
    found = max((at + 1 for at, chance in enumerate(chances) if chance <= error), default=0)
    return [min(chances[at:found]) for at in range(found)]


def _tests(count: int) -> int:
    """How many of so many values are tested at once."""
    return max(1, int(_SHARE * count))


def _weight(at: int, tests: int) -> float:
    """The share of the error that a test gets: the first one most of it."""
    if tests == 1:
        return 1.0
    return _FIRST if at == 0 else (1 - _FIRST) / (tests - 1)


def _chance(lowest: float, others: Sequence[float], min_deviation: float) -> float:
    """That of so many values any is so far below the others."""
    t = (fmean(others) - lowest) / _deviation_of_one_more(others, min_deviation)
    return (len(others) + 1) * student_tail(t, len(others) - 1)


def _deviation_of_one_more(others: Sequence[float], min_deviation: float) -> float:
    """Of its distance from their mean."""
    centre = fmean(others)
    squares = sum((value - centre) ** 2 for value in others)
    deviation = max(math.sqrt(squares / (len(others) - 1)), min_deviation)
    return deviation * math.sqrt(1 + 1 / len(others))
