"""Two regimes: found in what was recorded on a real machine, not seen in ordinary noise."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.plan import regimes
from flowos.plan._regimes import positive

# STREAM triad of 2 threads on a shared virtual machine: 24 runs back to back in the slow regime,
# and the same binary in the fast one (2-core Zen 5, November 2026; GB/s).
SLOW = [45.7, 44.9, 46.2, 45.1, 42.9, 45.6, 46.6, 44.3, 45.8, 45.5, 48.6, 45.3]
FAST = [69.5, 71.6, 65.0, 78.0, 64.7, 72.3, 70.1, 66.8]


def test_recorded_runs_in_both_regimes_are_told_apart() -> None:
    found = regimes(SLOW + FAST)
    assert found is not None
    assert (found.low_count, found.high_count) == (len(SLOW), len(FAST))
    assert found.step == pytest.approx(1.53, abs=0.03)
    assert str(found) == "two regimes: 40% of the values lie 1.53x above the others"


@pytest.mark.parametrize("one", [SLOW, FAST], ids=["slow", "fast"])
def test_recorded_runs_in_one_regime_are_one(one: list[float]) -> None:
    assert regimes(one) is None


def test_a_few_slow_first_repetitions_are_no_regime() -> None:
    assert regimes([30.0, 31.0, *SLOW]) is None


def test_a_step_below_a_tenth_is_no_regime() -> None:
    assert regimes([1.0] * 8 + [1.09] * 8) is None
    assert regimes([1.0] * 8 + [1.1] * 8) is not None


@pytest.mark.parametrize(
    ("low", "high", "two"), [(8, 2, True), (2, 8, True), (9, 2, False), (2, 9, False)]
)
def test_a_regime_has_a_fifth_of_the_values(low: int, high: int, two: bool) -> None:
    assert (regimes([1.0] * low + [2.0] * high) is not None) is two


@pytest.mark.parametrize(("low", "high"), [(8, 9), (9, 8)])
def test_regimes_may_lie_farther_apart_than_a_number_can_say(low: int, high: int) -> None:
    found = regimes([1e-300] * low + [1e300] * high)
    assert found is not None
    assert (found.low_count, found.high_count) == (low, high)


def test_what_has_no_logarithm_is_no_value() -> None:
    assert positive([0.0, -1.0, math.inf, math.nan, 5e-324, 1.7e308]) == (5e-324, 1.7e308)


def test_seven_values_are_too_few() -> None:
    assert regimes([1.0] * 4 + [2.0] * 3) is None
    assert regimes([1.0] * 4 + [2.0] * 4) is not None


@pytest.mark.parametrize(("step", "two"), [(5.99, False), (6.01, True)])
def test_regimes_lie_six_deviations_apart(step: float, two: bool) -> None:
    """Two groups of four, each 0.1 off its middle: their deviation has 8 - 2 degrees of freedom."""
    deviation = 0.1 * math.sqrt(8 / 6)
    logs = [0.1 * off + at for at in (0.0, step * deviation) for off in (-1, -1, 1, 1)]
    assert (regimes(map(math.exp, logs)) is not None) is two


@pytest.mark.parametrize("count", [8, 16, 60])
def test_two_regimes_are_found_in_most_rows_and_invented_in_few(count: int) -> None:
    random, trials = Random(count), 400

    def noise() -> float:
        return math.exp(random.gauss(0, 0.03) + 0.15 * (random.random() < 0.03))

    def row(step: float) -> list[float]:
        return [noise() * (step if i % 3 == 0 else 1.0) for i in range(count)]

    assert sum(regimes(row(1.5)) is not None for _ in range(trials)) >= 0.9 * trials
    assert sum(regimes(row(1.0)) is not None for _ in range(trials)) <= 0.05 * trials


@given(st.lists(st.floats()))
def test_any_row_of_numbers_has_an_answer(values: list[float]) -> None:
    found = regimes(values)
    assert found is None or 0 < found.low < found.high


@given(st.lists(st.integers(1, 9), min_size=8), st.integers(-9, 9))
def test_the_scale_does_not_matter(values: list[int], power: int) -> None:
    assert (regimes(values) is None) == (regimes(v * 2.0**power for v in values) is None)


@pytest.mark.parametrize("values", [[1, 1, 2, 4, 4, 4, 4, 4], [1, 1, 1, 1, 1, 2, 4, 4]])
def test_nor_does_it_where_groups_lie_six_deviations_apart(values: list[int]) -> None:
    """Exactly six: which way the limit is rounded is the same in all units."""
    assert len({regimes(v * 2.0**power for v in values) is None for power in range(-9, 10)}) == 1
