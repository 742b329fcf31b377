"""Changes in runs one after the other: against SciPy, in simple cases, and how often wrong."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flowos.plan import number_changes, wilson
from flowos.plan._change_points import Break, _limit, best_break, change_places
from tests.unit.plan.many_runs import RATE, TIME, at, heavy, normal, run, runs_of

QUIET = [40.0, 40.2, 39.8, 40.1]


@settings(max_examples=25)
@given(st.lists(st.floats(-3, 3), min_size=6, max_size=20))
def test_the_best_place_is_that_of_the_largest_students_t(values: list[float]) -> None:
    places = range(3, len(values) - 2)
    assume(min(np.ptp(values[:3]), np.ptp(values[-3:])) > 0.01)
    tests = {k: scipy.stats.ttest_ind(values[:k], values[k:]) for k in places}
    best = max(places, key=lambda k: abs(tests[k].statistic))
    ordered = sorted(abs(t.statistic) for t in tests.values())
    assume(len(ordered) == 1 or ordered[-1] - ordered[-2] > 1e-6)
    found = best_break(values)
    assert found.at == best
    expected = min(1.0, len(places) * tests[best].pvalue)
    assert found.chance in (pytest.approx(expected, rel=1e-6, abs=1e-12), 1.0)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.05, 0.3]),
)
def test_what_counts_is_what_benjamini_and_hochberg_reject(
    chances: list[float], error: float
) -> None:
    adjusted = scipy.stats.false_discovery_control(chances)
    assume(all(abs(a - error) > 1e-9 for a in adjusted))
    limit = _limit(chances, error)
    assert [c <= limit for c in chances] == [bool(a <= error) for a in adjusted]


def test_a_change_is_between_two_runs_by_a_ratio_with_an_interval() -> None:
    before, after = [40.0, 40.2, 39.8, 40.1], [36.0, 36.2, 35.8]
    (found,) = number_changes(runs_of(RATE, *before, *after))
    (change,) = found.changes
    assert found.values == (*before, *after)
    assert (found.changed_at, change.last, change.first) == ((4,), "r3", "r4")
    logs = np.log(before), np.log(after)
    test = scipy.stats.ttest_ind(logs[1], logs[0])
    expected = test.confidence_interval(0.95)
    assert change.ratio == pytest.approx(math.exp(logs[1].mean() - logs[0].mean()))
    assert change.low == pytest.approx(math.exp(expected.low))
    assert change.high == pytest.approx(math.exp(expected.high))
    assert change.chance == pytest.approx(2 * test.pvalue, rel=1e-6)
    assert change.before == pytest.approx(scipy.stats.gmean(before))
    assert change.after == pytest.approx(scipy.stats.gmean(after))


def test_longer_times_are_worse() -> None:
    (found,) = number_changes(runs_of(TIME, 1.0, 1.01, 0.99, 1.2, 1.21, 1.19))
    assert found.changes[0].ratio == pytest.approx(1 / 1.2, rel=0.01)
    assert found.changes[0].after == pytest.approx(1.2, rel=0.01)


def test_several_changes_are_found_in_order() -> None:
    parts = [[v * f for v in QUIET] for f in (1.0, 0.8, 0.6)]
    (found,) = number_changes(runs_of(RATE, *parts[0], *parts[1], *parts[2]))
    assert found.changed_at == (4, 8)
    assert [round(change.ratio, 2) for change in found.changes] == [0.8, 0.75]


def test_what_repeats_exactly_has_not_changed_and_a_step_of_it_has() -> None:
    assert best_break([1.0] * 8).chance == 1.0
    step = best_break([1.0] * 4 + [2.0] * 4, 0.01)
    assert (step.at, step.chance < 1e-9) == (4, True)


def test_a_single_odd_run_is_no_change() -> None:
    values = [*QUIET, *QUIET, 40.0, 30.0]
    (found,) = number_changes(runs_of(RATE, *values))
    assert found.changes == ()


def test_less_than_a_hundredth_is_of_no_interest() -> None:
    (found,) = number_changes(runs_of(RATE, 100, 100.01, 99.99, 99.5, 99.51, 99.49))
    assert found.changes == ()


def test_a_number_that_was_0_is_there_and_not_judged() -> None:
    values = (0.0,) * 8 + (0.5,) * 8
    (found,) = number_changes(runs_of(TIME, *values))
    assert (found.judged, found.values, found.changes) == (False, values, ())
    (other,) = number_changes(runs_of(TIME, *values[8:]))
    assert other.judged


def test_fewer_than_six_runs_say_nothing() -> None:
    assert number_changes(runs_of(RATE, 40, 40, 40, 20, 20)) == ()
    assert best_break([1.0, 1.0, 2.0, 2.0, 2.0]) == Break(0, 1.0)
    assert change_places([1.0, 2.0], 0.05, 0.01) == []


def test_many_numbers_share_the_error_unless_many_changed() -> None:
    names = [f"m{n}" for n in range(30)]
    slow = [40.0, 41.0, 39.5, 40.5, 38.0, 38.5, 37.5, 38.4]
    calm = [40.0, 41.0, 39.5, 40.5, 40.2, 40.8, 39.6, 40.4]

    def changed(moved: int) -> int:
        runs = [
            run(
                f"r{n}",
                *(
                    replace(at(RATE, (slow if i < moved else calm)[n]), metric=name)
                    for i, name in enumerate(names)
                ),
            )
            for n in range(8)
        ]
        return sum(bool(history.changes) for history in number_changes(runs))

    assert (changed(1), changed(30)) == (0, 30)


def test_marked_runs_are_left_out_where_enough_others_are() -> None:
    values = [*QUIET, *QUIET]
    runs = [run(f"r{n}", at(RATE, v, marked=n == 2)) for n, v in enumerate(values)]
    (found,) = number_changes(runs)
    assert len(found.values) == 7


def alarms(noise: Callable[[random.Random], float], count: int, times: int) -> int:
    draw = random.Random(11)
    return sum(
        best_break([0.02 * noise(draw) for _ in range(count)]).chance <= 0.05 for _ in range(times)
    )


@pytest.mark.parametrize("noise", [normal, heavy])
@pytest.mark.parametrize(("count", "times"), [(6, 1500), (10, 1000), (30, 400)])
def test_what_does_not_change_is_said_to_as_rarely_as_stated(
    noise: Callable[[random.Random], float], count: int, times: int
) -> None:
    low, _ = wilson(alarms(noise, count, times), times)
    assert low <= 0.05


@pytest.mark.parametrize(
    ("count", "place", "slower", "power"),
    [(10, 5, 0.05, 0.78), (20, 10, 0.05, 0.99), (20, 17, 0.05, 0.77), (20, 17, 0.1, 1.0)],
)
def test_changes_are_found(count: int, place: int, slower: float, power: float) -> None:
    """Of numbers that scatter by 2 %; docs/acceptance.md has these."""
    draw = random.Random(13)
    found = 0
    for _ in range(200):
        values = [
            draw.gauss(0.0, 0.02) + (math.log(1 - slower) if n >= place else 0.0)
            for n in range(count)
        ]
        found += best_break(values).chance <= 0.05
    low, high = wilson(found, 200, 3.0)
    assert low - 1e-9 <= power <= high + 1e-9
