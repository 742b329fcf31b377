"""Baselines from runs, and runs judged against them."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy

from flowos.model import Baseline, BaselineNumber, Case, MachineKind, Measurement, Unmeasured
from flowos.plan import (
    BaselineCheck,
    MachineRun,
    Numbers,
    baseline_numbers,
    checked,
    unjudged_numbers,
)
from flowos.plan import tolerance_with as tolerance_of
from flowos.plan._new_run import new_run
from tests.unit.plan.many_runs import MARKED, RATE, TIME, at, heavy, normal, run, runs_of

OTHER = replace(RATE, metric="copy")


def baseline(*numbers: BaselineNumber, widest: float = 0.25) -> Baseline:
    return Baseline(
        kind=MachineKind(processor="c", cpus=2, architecture="x86_64"),
        made="2026-11-27T00:00:00Z",
        version="0",
        runs=("r1", "r2"),
        machines=("n1",),
        probes=("stream",),
        effort="quick",
        error=0.05,
        max_tolerance=widest,
        numbers=numbers,
    )


def number(m: Measurement = RATE, tolerance: float = 0.1, **changes: object) -> BaselineNumber:
    made = BaselineNumber(
        probe=m.case.probe,
        levels=m.case.levels,
        metric=m.metric,
        unit=m.unit,
        median=m.median,
        spread=0.01,
        runs=5,
        machines=1,
        tolerance=tolerance,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def check(of: Baseline, *measured: Measurement, **more: object) -> BaselineCheck:
    return checked(of, Numbers(run="new", measurements=measured, **more))  # type: ignore[arg-type]


def answers(of: BaselineCheck) -> list[str]:
    return [row.answer for row in of.numbers]


def test_a_baseline_has_the_median_the_spread_and_the_tolerance_that_follows() -> None:
    values = [40e9, 41e9, 42e9, 40.5e9, 41.5e9]
    (found,) = baseline_numbers(runs_of(RATE, *values), error=0.05)
    logs = [math.log(value) for value in values]
    assert found.median == pytest.approx(41e9)
    assert found.spread == pytest.approx(math.expm1(scipy.stats.tstd(logs)), rel=1e-5)
    scale = scipy.stats.tstd(logs) * math.sqrt(1 + math.pi / 10)
    assert found.tolerance == pytest.approx(
        math.expm1(scipy.stats.t.isf(0.05, 4) * scale), rel=1e-5
    )
    assert (found.runs, found.machines, found.disturbed) == (5, 1, False)
    assert tolerance_of(found, 5, 0.05) == pytest.approx(found.tolerance, rel=1e-4)
    assert tolerance_of(found, 10, 0.05) < found.tolerance


def test_of_machines_each_counts_once() -> None:
    runs = runs_of(RATE, 40e9, 42e9, 60e9, machines=("a", "a", "b"))
    (found,) = baseline_numbers(runs, error=0.05)
    assert (found.runs, found.machines) == (3, 2)
    assert found.median == pytest.approx(math.sqrt(math.sqrt(40e9 * 42e9) * 60e9), rel=1e-5)


def test_many_numbers_share_the_error() -> None:
    values = (40e9, 41e9, 42e9)
    both = [run(f"r{v}", at(RATE, v), at(OTHER, v)) for v in values]
    first, second = baseline_numbers(both, error=0.05)
    (alone,) = baseline_numbers(runs_of(RATE, *values), error=0.025)
    assert first.tolerance == second.tolerance == alone.tolerance


def test_what_repeats_exactly_has_a_tolerance_all_the_same() -> None:
    (found,) = baseline_numbers(runs_of(RATE, 40e9, 40e9, 40e9), error=0.05)
    assert found.tolerance == 0.01
    wide = [run(f"r{n}", at(RATE, 40e9, spread=0.1)) for n in range(3)]
    (scattered,) = baseline_numbers(wide, error=0.05)
    assert scattered.spread == pytest.approx(0.2 / 1.349 * math.sqrt(math.pi / 2 / 8), rel=0.05)


def test_a_spread_without_end_is_cut() -> None:
    (found,) = baseline_numbers(runs_of(RATE, 1e-9, 40e9), error=0.001)
    assert found.tolerance == pytest.approx(1e6 - 1, rel=1e-5)


def test_numbers_of_one_run_and_below_0_are_left_out() -> None:
    values = [(40e9, 1e9), (41e9, 0.0), (42e9, 1e9)]
    runs = [run(f"r{a}", at(RATE, a), at(OTHER, b)) for a, b in values]
    assert [n.metric for n in baseline_numbers(runs, error=0.05)] == ["triad"]
    assert [n.metric for n in unjudged_numbers(runs)] == ["copy"]
    assert baseline_numbers(runs[:1], error=0.05) == ()
    assert unjudged_numbers(runs[:1]) == ()


@pytest.mark.parametrize(
    ("marked", "count", "disturbed"),
    [(0, 4, False), (1, 4, False), (2, 4, True), (3, 6, False), (4, 7, True), (6, 6, True)],
)
def test_marked_numbers_are_used_only_where_too_few_are_not(
    marked: int, count: int, disturbed: bool
) -> None:
    seen = [run(f"r{n}", at(RATE, 40e9 + n, marked=n < marked)) for n in range(count)]
    (found,) = baseline_numbers(seen, error=0.05)
    assert found.disturbed == disturbed
    assert found.runs == (count if disturbed else count - marked)


@pytest.mark.parametrize(
    ("m", "factor", "answer"),
    [
        (RATE, 1 / 1.09, "pass"),
        (RATE, 1 / 1.11, "worse"),
        (RATE, 1.09, "pass"),
        (RATE, 1.11, "better"),
        (TIME, 1.09, "pass"),
        (TIME, 1.11, "worse"),
        (TIME, 1 / 1.11, "better"),
        (RATE, 0.0, "cannot judge"),
        (RATE, math.inf, "cannot judge"),
    ],
)
def test_a_number_is_judged_by_the_factor_between(
    m: Measurement, factor: float, answer: str
) -> None:
    found = check(baseline(number(m)), at(m, m.median * factor))
    assert answers(found) == [answer]
    end_of = {"worse": "worse", "cannot judge": "cannot judge"}
    assert found.answer == end_of.get(answer, "equal or better")


def test_its_limits_are_those_between_which_it_passes() -> None:
    low, high = number().limits
    assert low == pytest.approx(40e9 / 1.1)
    assert high == pytest.approx(44e9)


def test_a_marked_number_is_judged_only_within_its_limits() -> None:
    of = baseline(number())
    assert answers(check(of, at(RATE, 40e9, marked=True))) == ["pass"]
    (slow,) = check(of, at(RATE, 20e9, marked=True)).numbers
    assert (slow.answer, slow.why) == ("cannot judge", f"not to be trusted: {MARKED.marks[0]}")
    disturbed = baseline(number(disturbed=True))
    assert answers(check(disturbed, at(RATE, 20e9, marked=True))) == ["worse"]


def test_within_a_wide_tolerance_nothing_passes_and_beyond_it_is_worse() -> None:
    of = baseline(number(tolerance=0.5))
    found = check(of, RATE)
    assert answers(found) == ["cannot judge"]
    assert found.why == ("stream: 1 of 1 numbers cannot be judged; its 5 runs scatter too much",)
    assert answers(check(of, at(RATE, 20e9))) == ["worse"]
    assert answers(check(replace(of, max_tolerance=0.5), RATE)) == ["pass"]


def test_of_a_probe_more_than_half_must_be_judged() -> None:
    third = replace(RATE, metric="add")
    of = baseline(number(), number(OTHER), number(third))
    assert check(of, RATE, OTHER).answer == "equal or better"
    found = check(of, RATE)
    assert found.answer == "cannot judge"
    assert found.why == ("stream: 2 of 3 numbers cannot be judged; the run has no such number",)
    assert not found.numbers[1].judged


def test_a_case_that_failed_is_no_pass_and_says_why() -> None:
    of = baseline(number(), number(OTHER), number(TIME))
    whole = Case("stream", ())
    numbers = Numbers(run="new", measurements=[RATE, OTHER], failed=[Case("mpi")])
    why = ((whole, Unmeasured(reason="not it")), (Case("mpi"), Unmeasured(reason="no mpirun")))
    found = checked(of, numbers, why)
    assert found.numbers[2].why == "no mpirun"
    assert (found.answer, found.why) == (
        "cannot judge",
        ("mpi: 1 of 1 numbers could not be measured",),
    )


def test_of_a_run_that_ended_early_it_says_why() -> None:
    found = check(baseline(number()), ended_early="it was interrupted")
    assert found.numbers[0].why == "the run ended early, as it was interrupted"


def test_worse_is_the_answer_whatever_else_cannot_be_judged() -> None:
    found = check(baseline(number(), number(TIME)), at(RATE, 20e9))
    assert (answers(found), found.answer) == (["worse", "not measured"], "worse")


def rates(noise: Callable[[random.Random], float], runs: int, numbers: int) -> list[float]:
    """Factors below which a number is worse, of many baselines whose runs scatter by 2 %."""
    draw = random.Random(3)
    found = []
    for _ in range(800):
        seen = new_run([[0.02 * noise(draw) for _ in range(runs)]], 1e-9)
        found.append((seen.centre - seen.reach(0.05 / numbers)) / 0.02)
    return found


@pytest.mark.parametrize("numbers", [1, 20, 200])
@pytest.mark.parametrize("runs", [3, 5, 10, 30])
def test_healthy_machines_fail_as_rarely_as_stated(runs: int, numbers: int) -> None:
    each = scipy.stats.norm.cdf(rates(normal, runs, numbers))
    mean, scatter = np.mean(each), np.std(each) / math.sqrt(len(each))
    assert 1 - (1 - mean + 2 * scatter) ** numbers <= 0.05


@pytest.mark.parametrize(("runs", "numbers", "rate"), [(10, 1, 0.05), (10, 20, 0.14)])
def test_with_heavier_tails_they_fail_more_often(runs: int, numbers: int, rate: float) -> None:
    """docs/acceptance.md has these; Student's t with 4 degrees of freedom."""
    each = scipy.stats.t.cdf(np.array(rates(heavy, runs, numbers)) * math.sqrt(2), 4)
    assert 1 - (1 - np.mean(each)) ** numbers == pytest.approx(rate, rel=0.25)


@pytest.mark.parametrize(
    ("runs", "slower", "power"),
    [(5, 0.1, 0.39), (5, 0.2, 0.97), (10, 0.1, 0.83), (10, 0.2, 1.0)],
)
def test_slower_ones_are_found(runs: int, slower: float, power: float) -> None:
    """Of 20 numbers that scatter by 2 %; docs/acceptance.md has these."""
    limits = np.array(rates(normal, runs, 20))
    found = np.mean(scipy.stats.norm.cdf(limits - math.log(1 - slower) / 0.02))
    assert found == pytest.approx(power, abs=0.06)


def test_a_healthy_run_passes_and_a_slower_one_does_not() -> None:
    draw = random.Random(1)
    measured = [replace(RATE, metric=f"m{n}") for n in range(10)]

    def one(name: str, factor: float = 1.0) -> MachineRun:
        return run(name, *(at(m, 40e9 * factor * math.exp(draw.gauss(0, 0.01))) for m in measured))

    of = baseline(*baseline_numbers([one(f"r{n}") for n in range(10)], error=0.05))
    assert checked(of, one("new").numbers).answer == "equal or better"
    assert answers(checked(of, one("slow", 0.8).numbers)) == ["worse"] * 10
    assert answers(checked(of, one("fast", 1.3).numbers)) == ["better"] * 10
