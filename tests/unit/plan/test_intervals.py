"""Intervals: against published tables, and their promise by simulation."""

from random import Random

import pytest

from flowos.plan import wilson
from flowos.plan._intervals import Interval, interval, student_quantile

LEVEL = 0.9875


@pytest.mark.parametrize(
    ("freedom", "level", "published"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.99, 5.841), (4, 0.95, 2.776), (31, 0.95, 2.040)],
)
def test_student_quantiles_are_those_of_the_tables(
    freedom: int, level: float, published: float
) -> None:
    assert student_quantile(level, freedom) == pytest.approx(published, abs=5e-4)


def test_the_interval_of_twelve_values_is_that_of_the_signed_rank_table() -> None:
    # n = 12: P(T+ <= 13) = 0.021 (Hollander, Wolfe, table A.4), so 13 means lie out on each side.
    values = [float(2**k) for k in range(12)]
    means = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    found = interval(values, 0.95)
    assert (found.low, found.high) == (means[13], means[-14])


def test_a_tail_of_exactly_the_allowed_error_is_outside() -> None:
    # n = 3: T+ <= 1 and T+ >= 5 have 2 of the 8 signs each, together one half.
    assert interval([1.0, 2.0, 4.0], 0.5) == Interval(2.25, 1.5, 3.0)


def test_below_eight_values_known_noise_keeps_a_chance_agreement_from_narrowing() -> None:
    values = [0.01, 0.01, 0.01, 0.01]
    assert interval(values, LEVEL).high == pytest.approx(0.01)
    assert interval(values, LEVEL, min_deviation=0.02).high > 0.05


@pytest.mark.parametrize("count", [4, 8, 16])
def test_the_interval_holds_the_centre_as_often_as_promised(count: int) -> None:
    random, trials = Random(count), 1500
    missed = 0
    for _ in range(trials):
        tails = [random.gauss(0, 1) / abs(random.gauss(0, 1)) ** 0.5 for _ in range(count)]
        found = interval(tails, LEVEL)
        missed += not found.low <= 0 <= found.high
    assert missed / trials < 0.0125 + 3 * (0.0125 / trials) ** 0.5


@pytest.mark.parametrize(
    ("hits", "low", "high"), [(0, 0.0, 0.071), (25, 0.366, 0.634), (50, 0.929, 1.0)]
)
def test_the_interval_of_a_share_is_that_of_published_tables(
    hits: int, low: float, high: float
) -> None:
    assert wilson(hits, 50) == pytest.approx((low, high), abs=1e-3)


def test_the_interval_of_a_share_lies_within_0_and_1() -> None:
    for trials in range(1, 64):
        assert wilson(0, trials)[0] >= 0
        assert wilson(trials, trials)[1] <= 1
