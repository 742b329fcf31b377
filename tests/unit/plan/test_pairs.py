"""Whole rounds of two cases, made from samples, and their numbers."""

import math
from collections.abc import Sequence

import pytest

from flowos.model import Case, Sample
from flowos.plan import NOISE_THRESHOLDS
from flowos.plan._pairs import Round, Turns, pairs

CASES = {level: Case("p", (("with", level),)) for level in "ab"}


def sampled(level: str, *values: float, interleaved: bool = False, unit: str = "byte/s") -> Sample:
    case = CASES[level]
    return Sample(
        run="r", case=case, round=0, metric="m", unit=unit, values=values, interleaved=interleaved
    )


def rounds_of(*samples: Sample) -> Sequence[Round]:
    (pair,) = pairs(samples, "with", "a", NOISE_THRESHOLDS)
    return pair.rounds


@pytest.mark.parametrize(
    ("ours", "theirs", "whole"), [(1, 1, 0), (1, 2, 0), (2, 2, 1), (2, 3, 0), (3, 3, 1)]
)
def test_a_round_is_whole_with_at_least_two_turns_of_each(
    ours: int, theirs: int, whole: int
) -> None:
    assert len(rounds_of(*[sampled("a", 1.0)] * ours, *[sampled("b", 1.0)] * theirs)) == whole


@pytest.mark.parametrize(("unit", "sign"), [("second", -1), ("byte/s", 1)])
def test_a_turn_has_the_median_of_its_values_and_the_mean_of_their_times(
    unit: str, sign: int
) -> None:
    """The mean time of rates is that of the same work: the harmonic mean of the rates."""
    values = (1.0, 2.0, 12.0)
    (whole,) = rounds_of(
        *[sampled("a", 1.0, unit=unit)] * 2, *[sampled("b", *values, unit=unit)] * 2
    )
    mean_time = sum(value**-sign for value in values) / 3
    assert whole.other.logs == pytest.approx([sign * math.log(2.0)] * 2)
    assert whole.other.means == pytest.approx([-math.log(mean_time)] * 2)
    assert whole.lags == pytest.approx(whole.other.means)


def test_each_value_is_a_turn_where_both_sides_ran_in_turns() -> None:
    for base, other in ((True, True), (True, False), (False, True), (False, False)):
        values = (1.0, 2.0, 4.0, 8.0)
        (whole,) = rounds_of(
            *(
                [sampled("a", *values, interleaved=True)]
                if base
                else [sampled("a", v) for v in values]
            ),
            *(
                [sampled("b", *values, interleaved=True)]
                if other
                else [sampled("b", v) for v in values]
            ),
        )
        assert whole.interleaved is (base and other)
        assert whole.base.logs == whole.other.logs == pytest.approx(tuple(map(math.log, values)))


@pytest.mark.parametrize(
    ("base", "other", "inner"), [((0.0, 0.1), (0.0, 0.3), 0.3), ((0.5, 0.1), (0.0, 0.3), 0.4)]
)
def test_a_rounds_inner_spread_is_that_of_the_side_that_varies_more(
    base: tuple[float, ...], other: tuple[float, ...], inner: float
) -> None:
    sides = (Turns(logs, logs, marked=False, interleaved=False) for logs in (base, other))
    assert Round(("r", 0), *sides).inner == pytest.approx(inner)
