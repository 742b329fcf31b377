"""Slow machines among others: against SciPy, in simple cases, and how often that is wrong."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flowos.plan import slow_machines, wilson
from flowos.plan._slow_machines import slow_ones, slow_reach
from tests.unit.plan.many_runs import RATE, TIME, at, heavy, normal, run, runs_of

NODES = ("a", "b", "c", "d", "e")


@settings(max_examples=40)
@given(st.lists(st.floats(-3, 3), min_size=3, max_size=7))
def test_the_slowest_of_few_is_found_by_grubbs_test(values: list[float]) -> None:
    count, deviation = len(values), float(scipy.stats.tstd(values)) if len(set(values)) > 1 else 0.0
    assume(deviation > 1e-3)
    grubbs = (sum(values) / count - min(values)) / deviation
    t = scipy.stats.t.isf(0.05 / count, count - 2)
    limit = (count - 1) / math.sqrt(count) * math.sqrt(t * t / (count - 2 + t * t))
    assume(abs(grubbs - limit) > 1e-6)
    assert bool(slow_ones(values, 0.05)) == (grubbs > limit)


def test_a_slow_one_is_named_with_what_the_others_have() -> None:
    runs = runs_of(RATE, 40e9, 40.2e9, 30e9, 39.8e9, 40.1e9, machines=NODES)
    found = slow_machines(runs)
    (slow,) = found.slow
    assert (found.machines, found.numbers, found.by_run) == (NODES, 1, False)
    assert (slow.machine, slow.metric, slow.of) == ("c", "triad", 5)
    assert slow.value == pytest.approx(30e9)
    assert slow.others == pytest.approx(math.sqrt(40e9 * 40.1e9))
    assert slow.ratio == pytest.approx(slow.value / slow.others)
    assert 0 < slow.chance < 0.001


def test_fast_ones_and_longer_times_have_their_sides() -> None:
    assert slow_machines(runs_of(RATE, 40.0, 40.2, 50.0, 39.8, 40.1, machines=NODES)).slow == ()
    assert slow_machines(runs_of(TIME, 1.0, 1.01, 0.7, 1.0, 0.99, machines=NODES)).slow == ()
    (slow,) = slow_machines(runs_of(TIME, 1.0, 1.01, 1.5, 1.0, 0.99, machines=NODES)).slow
    assert slow.machine == "c"
    assert slow.value == pytest.approx(1.5)
    assert slow.ratio == pytest.approx(1 / 1.5, rel=0.01)


def test_a_number_that_is_0_on_a_machine_is_named_and_not_judged() -> None:
    runs = [
        run(name, at(RATE, 40e9), at(TIME, value), machine=name)
        for name, value in zip(NODES, (0.0, 0.0, 5.0, 0.0, 0.0), strict=True)
    ]
    found = slow_machines(runs)
    assert (found.numbers, found.slow) == (1, ())
    assert [(n.case, n.metric) for n in found.unjudged] == [(TIME.case, TIME.metric)]


def test_less_than_a_hundredth_is_of_no_interest() -> None:
    assert slow_machines(runs_of(RATE, 100, 100, 99.5, 100, 100.001, machines=NODES)).slow == ()


def test_runs_of_a_machine_count_as_their_mean() -> None:
    names = ("a", "a", "b", "b", "c", "c")
    found = slow_machines(runs_of(RATE, 40, 41, 41, 40, 20, 20.5, machines=names))
    assert [(s.machine, s.of) for s in found.slow] == [("c", 3)]
    assert found.slow[0].value == pytest.approx(math.sqrt(20 * 20.5))


def test_runs_of_one_name_are_machines_of_their_own() -> None:
    found = slow_machines(runs_of(RATE, 40, 40.2, 30, 39.8, 40.1))
    assert found.by_run
    assert [s.machine for s in found.slow] == ["r2"]


def test_two_machines_say_nothing() -> None:
    found = slow_machines(runs_of(RATE, 40, 4, machines=("a", "b")))
    assert (found.numbers, found.slow) == (0, ())


def test_many_numbers_share_the_error() -> None:
    names = [f"m{n}" for n in range(50)]
    values = (40.0, 40.2, 38.6, 39.8, 40.1)
    alone = slow_machines(runs_of(RATE, *values, machines=NODES))
    several = slow_machines(
        [
            run(f"r{v}", *(replace(at(RATE, v), metric=m) for m in names), machine=node)
            for v, node in zip(values, NODES, strict=True)
        ]
    )
    assert (len(alone.slow), several.slow) == (1, ())


def test_several_slow_ones_do_not_hide_each_other() -> None:
    draw = random.Random(3)
    values = [draw.gauss(0.0, 0.02) - (0.2 if n < 4 else 0.0) for n in range(20)]
    assert set(slow_ones(values, 0.05)) == {0, 1, 2, 3}
    few = [0.0, 0.01, -0.01, 0.005, -0.005, 0.0, -0.3, -0.3]
    assert set(slow_ones(few, 0.05)) == {6, 7}


def test_where_all_but_two_are_slow_it_ends() -> None:
    assert slow_ones([0.0, 1e-12, -1.0, -100.0], 0.3) == {
        3: pytest.approx(0.0, abs=0.02),
        **{2: pytest.approx(0.0, abs=1e-3)},
    }


@settings(max_examples=60)
@given(st.lists(st.floats(-3, 3), min_size=3, max_size=12), st.sampled_from([0.05, 0.05 / 7]))
def test_from_its_limit_on_the_lowest_is_found(values: list[float], error: float) -> None:
    _, *others = sorted(values)
    reach, centre = slow_reach(values, error), sum(others) / len(others)
    assume(reach > 1e-3)
    assert slow_ones([centre - 1.001 * reach, *others], error)
    above = centre - 0.999 * reach
    if above < others[0] and len(values) < 8:  # of more, two are tested at once
        assert not slow_ones([above, *others], error)


def test_a_slow_one_of_four_is_found_and_from_where_on_is_said() -> None:
    nodes, values = ("a", "b", "c", "d"), (40.0, 40.2, 20.0, 39.8)
    found = slow_machines(runs_of(RATE, *values, machines=nodes))
    assert [(slow.machine, slow.of) for slow in found.slow] == [("c", 4)]
    assert found.limits == (), "it may hide another one"
    hidden = slow_machines(runs_of(RATE, 40.0, 30.0, 20.0, 39.8, machines=nodes))
    assert hidden.slow == ()
    healthy = slow_machines(runs_of(RATE, 40.0, 40.2, 39.9, 39.8, machines=nodes))
    (limit,) = healthy.limits
    assert (healthy.slow, limit.case, limit.metric) == ((), RATE.case, RATE.metric)
    for share, slow in ((0.999, ["d"]), (1.001, [])):
        lower = limit.ratio * share * (40.0 * 40.2 * 39.9) ** (1 / 3)
        runs = runs_of(RATE, 40.0, 40.2, 39.9, lower, machines=nodes)
        assert [s.machine for s in slow_machines(runs).slow] == slow


def test_where_the_others_scatter_a_machine_of_four_may_be_five_times_slower() -> None:
    nodes, values = ("a", "b", "c", "d"), (40.0, 52.0, 32.0, 8.0)
    found = slow_machines(
        [
            run(f"r{v}", *(replace(at(RATE, v), metric=m) for m in "xyz"), machine=node)
            for v, node in zip(values, nodes, strict=True)
        ]
    )
    assert found.slow == ()
    assert all(limit.ratio < 8.0 / 40.0 for limit in found.limits), "which is said"


def test_no_limit_is_within_a_hundredth_nor_where_one_is_slow() -> None:
    (limit,) = slow_machines(runs_of(RATE, *(100.0,) * 5, machines=NODES)).limits
    assert limit.ratio == pytest.approx(1 / 1.01)
    found = slow_machines(runs_of(RATE, 40, 40.0001, 1, machines=("a", "b", "c")))
    assert (len(found.slow), found.limits) == (1, ())


def found_of(
    machines: int, slower: float, times: int, noise: Callable[[random.Random], float] = normal
) -> tuple[int, int]:
    """In how many of so many the first was found, and in how many any other."""
    draw = random.Random(7)
    right = wrong = 0
    for _ in range(times):
        values = [0.02 * noise(draw) for _ in range(machines)]
        values[0] += math.log(1 - slower)
        slow = slow_ones(values, 0.05)
        right += 0 in slow
        wrong += any(each != 0 for each in slow) or (not slower and 0 in slow)
    return right, wrong


@pytest.mark.parametrize(("machines", "times"), [(4, 2000), (8, 1000), (20, 500), (100, 120)])
def test_healthy_machines_are_called_slow_as_rarely_as_stated(machines: int, times: int) -> None:
    _, wrong = found_of(machines, 0.0, times)
    low, _ = wilson(wrong, times)
    assert low <= 0.05


@pytest.mark.parametrize(
    ("machines", "slower", "power"),
    [
        (4, 0.05, 0.13),
        (4, 0.1, 0.42),
        (4, 0.2, 0.9),
        (8, 0.1, 0.8),
        (20, 0.1, 0.92),
        (100, 0.05, 0.21),
        (100, 0.1, 0.95),
        (100, 0.2, 1.0),
    ],
)
def test_one_slow_machine_is_found(machines: int, slower: float, power: float) -> None:
    """Whose numbers scatter by 2 %; docs/acceptance.md has these."""
    times = 400 if machines < 100 else 100
    right, wrong = found_of(machines, slower, times)
    low, high = wilson(right, times, 3.0)
    assert low - 1e-9 <= power <= high + 1e-9
    assert wilson(wrong, times)[0] <= 0.05


def test_with_heavier_tails_more_are_called_slow() -> None:
    """docs/acceptance.md has this; Student's t with 4 degrees of freedom."""
    _, wrong = found_of(20, 0.0, 500, heavy)
    low, high = wilson(wrong, 500, 3.0)
    assert low < 0.18 < high
