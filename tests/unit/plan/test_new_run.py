"""Where a new run is expected: against SciPy, in simple cases, and by simulation."""

import math
import random
from statistics import NormalDist, fmean

import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flowos.plan._intervals import student_tail
from flowos.plan._new_run import new_run, with_runs


@settings(max_examples=40)
@given(t=st.floats(0.01, 50), freedom=st.integers(1, 200))
def test_the_tail_of_students_distribution(t: float, freedom: int) -> None:
    assert student_tail(t, freedom) == pytest.approx(
        scipy.stats.t.sf(t, freedom), rel=1e-6, abs=1e-14
    )


@settings(max_examples=40)
@given(
    values=st.lists(st.floats(-10, 10), min_size=2, max_size=30),
    error=st.floats(1e-6, 0.4),
)
def test_of_one_machine_it_is_students_bound_around_the_median(
    values: list[float], error: float
) -> None:
    deviation = scipy.stats.tstd(values) if len(set(values)) > 1 else 0.0
    assume(deviation > 1e-3)
    found = new_run([values], 1e-9)
    middle = scipy.stats.scoreatpercentile(values, 50)  # it rounds in another order
    assert found.centre == pytest.approx(middle, rel=1e-14, abs=1e-14)
    assert found.deviation == pytest.approx(deviation)
    scale = deviation * math.sqrt(1 + math.pi / 2 / len(values))
    expected = scipy.stats.t.isf(error, len(values) - 1) * scale
    assert found.reach(error) == pytest.approx(expected, rel=1e-6)


def test_runs_that_agree_by_chance_are_not_taken_for_exact() -> None:
    assert new_run([[1.0, 1.0, 1.0]], 0.02).deviation == 0.02
    assert new_run([[1.0], [1.0]], 0.02) == new_run([[1.0, 1.0]], 0.02)
    apart = new_run([[1.0, 1.02], [1.02, 1.0]], 0.02)
    assert apart.deviation == pytest.approx(0.02)


def test_machines_with_a_run_each_are_as_the_runs_of_one() -> None:
    assert new_run([[1.0], [1.2], [1.7]], 1e-9) == new_run([[1.0, 1.2, 1.7]], 1e-9)


def test_what_machines_differ_by_and_what_their_runs_do_is_added() -> None:
    found = new_run([[1.0, 1.2], [2.0, 2.2], [3.0, 3.2]], 1e-9)
    between, within = 1.0, 0.02
    assert found.centre == pytest.approx(2.1)
    assert found.deviation == pytest.approx(math.sqrt(between + within / 2))
    bounds = (
        scipy.stats.t.isf(0.01, 2) * math.sqrt(between * (1 + math.pi / 2 / 3)),
        scipy.stats.t.isf(0.01, 3) * math.sqrt(within / 2),
    )
    assert found.reach(0.01) == pytest.approx(math.hypot(*bounds))


def test_with_more_runs_it_is_narrower() -> None:
    reaches = [with_runs(0.02, n).reach(0.01) for n in (2, 3, 5, 10, 100)]
    assert reaches == sorted(reaches, reverse=True)
    assert with_runs(0.02, 3) == new_run([[-0.02, 0.0, 0.02]], 1e-9)


def missed(draw: random.Random, machines: int, runs: int, between: float, error: float) -> float:
    """Probability that a new run of a new machine lies below the bound of one baseline."""
    shifts = [draw.gauss(0.0, between) for _ in range(machines)]
    found = new_run([[s + draw.gauss(0.0, 1.0) for _ in range(runs)] for s in shifts], 1e-9)
    own = between if machines > 1 else 0.0
    centre = shifts[0] if machines == 1 else 0.0
    limit = found.centre - found.reach(error)
    return NormalDist(centre, math.hypot(own, 1.0)).cdf(limit)


@pytest.mark.parametrize("error", [0.05, 0.001])
@pytest.mark.parametrize(
    ("machines", "runs", "between"),
    [(1, 2, 0), (1, 3, 0), (1, 10, 0), (10, 1, 1), (4, 3, 0), (4, 3, 3), (5, 2, 1)],
)
def test_a_new_run_is_beyond_the_bound_as_often_as_stated_at_most(
    machines: int, runs: int, between: float, error: float
) -> None:
    draw = random.Random(5)
    found = [missed(draw, machines, runs, between, error) for _ in range(800)]
    scatter = math.sqrt(fmean(p * p for p in found) / len(found))
    assert fmean(found) <= error + 2 * scatter
    if 1 in (machines, runs):
        assert fmean(found) > error / 5
