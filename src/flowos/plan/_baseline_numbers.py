"""Makes the numbers of a baseline: what runs gave, and the tolerance of a new run.

Tolerances are such that of all numbers of a check together one is wrongly called worse with the
stated probability, at most: each number gets its share (Bonferroni), which holds however the
numbers of a run depend on each other. Better is as rare. Assumed: the logarithms of runs scatter
normally about their machine's; docs/acceptance.md says what other distributions do to the rate.
"""

import math
from collections.abc import Sequence

from flowos.model import BaselineNumber, UnjudgedNumber
from flowos.plan._new_run import NewRun, new_run, with_runs
from flowos.plan._repeated import (
    RESOLUTION,
    MachineRun,
    RepeatedNumber,
    at_goodness,
    repeated,
    unjudged,
)

CHECK_ERROR = 0.05
MAX_TOLERANCE = 0.25
"""By default a number with more does not pass: it would not have been noticed to be worse."""

MIN_RUNS = 2
QUIET_RUNS = 3
"""With fewer unmarked runs the marked ones are used, too."""

_MAX_LOG = math.log(1e6)


def baseline_numbers(runs: Sequence[MachineRun], *, error: float) -> tuple[BaselineNumber, ...]:
    """Of each number that two runs have, above 0 in all of them, in the order first seen.

    error: probability that a check of a machine like these calls any number worse.
    """
    numbers, _ = repeated(runs, of=_run, min_runs=MIN_RUNS, quiet=QUIET_RUNS)
    return tuple(_number(number, error / len(numbers)) for number in numbers)


def unjudged_numbers(runs: Sequence[MachineRun]) -> tuple[UnjudgedNumber, ...]:
    """The others that two runs have."""
    return unjudged(repeated(runs, of=_run, min_runs=MIN_RUNS, quiet=QUIET_RUNS)[1])


def _run(run: MachineRun) -> str:
    return run.numbers.run


def _number(number: RepeatedNumber, error: float) -> BaselineNumber:
    expected = new_run(number.by_machine(), number.min_deviation)
    return BaselineNumber(
        probe=number.case.probe,
        levels=number.case.levels,
        metric=number.metric,
        unit=number.unit,
        median=_rounded(at_goodness(expected.centre, number.unit)),
        spread=_rounded(math.expm1(min(expected.deviation, _MAX_LOG))),
        runs=len(number.found),
        machines=len(number.machines),
        tolerance=_tolerance(expected, error),
        disturbed=number.disturbed,
    )


def tolerance_with(number: BaselineNumber, runs: int, error: float) -> float:
    """About the tolerance that so many runs would give, or machines, if they scatter as these."""
    return _tolerance(with_runs(math.log1p(number.spread), runs), error)


def _tolerance(expected: NewRun, error: float) -> float:
    return max(RESOLUTION, _rounded(math.expm1(min(expected.reach(error), _MAX_LOG))))


def _rounded(value: float) -> float:
    """Six digits are more than any of these are known to, and are read more easily."""
    return float(f"{value:.6g}")
