"""What makes two cases equal, at the limit of each condition and just beyond it."""

import math
from dataclasses import replace

import pytest

from flowos.model import Verdict
from flowos.plan._answer import Evidence, concluded
from flowos.plan._intervals import Interval
from flowos.plan._tails import Tail

MARGIN = 0.03
LOG = math.log1p(MARGIN)
EVEN = Interval(0.0, -0.01, 0.01)
SLOWER = Interval(-0.1, -0.12, -0.08)
T_90_1 = 6.313751514675043
"""Student's t of 90 % for one degree of freedom."""

QUIET = Tail(excesses=(0.0, 0.0), base=0, other=0, chance=1.0, p90=0.0, costs=(0.0,) * 29)


def verdict(tail: Tail | None, median: Interval = EVEN, looks: int = 4) -> Verdict:
    opened = Verdict(
        probe="p",
        axis="with",
        base="a",
        other="b",
        rest=(),
        metric="m",
        ratio=math.nan,
        low=0.0,
        high=math.inf,
        margin=MARGIN,
        rounds=15,
        answer="inconclusive",
    )
    return concluded(opened, Evidence(median=median, tail=tail, looks=looks))


def spread(reach: float) -> Tail:
    """Two rounds whose mean is even, and lies within `reach` (in logarithms) in 90 %."""
    off = math.expm1(reach) / T_90_1
    return replace(QUIET, excesses=(off, -off))


def by(excess: float, count: int = 2) -> Tail:
    return replace(QUIET, excesses=(excess,) * count)


@pytest.mark.parametrize(
    ("tail", "doubt"),
    [
        (QUIET, ""),
        (by(MARGIN), ""),
        (by(-MARGIN), ""),
        (by(math.nextafter(MARGIN, 1)), "in the mean time: 0.971"),
        (by(math.nextafter(-MARGIN, -1)), "in the mean time: 1.03"),
        (spread(1.2 * LOG - 1e-9), ""),
        (spread(1.2 * LOG + 1e-9), "in the mean time: 1.000"),
        (replace(QUIET, p90=2 * LOG), ""),
        (replace(QUIET, p90=-2 * LOG), ""),
        (replace(QUIET, p90=2 * LOG + 1e-9), "not so in the 90th percentile: 1.061"),
        (replace(QUIET, p90=-2 * LOG - 1e-9), "not so in the 90th percentile: 0.943"),
        (replace(QUIET, chance=0.02), ""),
        (replace(QUIET, chance=0.0199, base=1, other=7), "lag most 7 are of b and 1 of a"),
        (replace(QUIET, costs=(0.0,) * 28), "28 processes of each are too few"),
        (replace(QUIET, costs=(0.3,) + (0.0,) * 28), ""),
        (replace(QUIET, costs=(0.31,) + (0.0,) * 63), ""),
        (replace(QUIET, costs=(0.31,) + (0.0,) * 62), "1 of 63 processes of b and 0 of a took 1.3"),
        (replace(QUIET, costs=(0.31, -0.31) + (0.0,) * 27), ""),
    ],
)
def test_equal_medians_are_equal_unless_one_of_these_is_beyond_its_limit(
    tail: Tail, doubt: str
) -> None:
    found = verdict(tail)
    assert found.answer == ("inconclusive" if doubt else "equal")
    assert (doubt in found.why) if doubt else (found.why == "")


@pytest.mark.parametrize(
    ("processes", "needed"),
    [(28, 16), (15, 29), (10, 44)],
)
def test_so_many_rounds_are_needed_for_the_processes_that_show_a_stall(
    processes: int, needed: int
) -> None:
    """15 rounds have so many processes; 29 are enough."""
    assert verdict(replace(QUIET, costs=(0.0,) * processes)).needed == needed


@pytest.mark.parametrize(("count", "statistic"), [(7, "median"), (8, "mean")])
def test_a_mean_decides_from_eight_rounds_on(count: int, statistic: str) -> None:
    found = verdict(by(0.5, count), median=Interval(-0.01, -0.1, 0.08))
    assert found.statistic == statistic
    assert found.answer == ("slower" if statistic == "mean" else "inconclusive")


def test_a_mean_that_decides_gives_the_ratio_at_its_share_of_the_error() -> None:
    """Of 1 % a quarter at each of four looks: t of 99.75 % and 7 degrees of freedom is 4.5946."""
    excesses = (0.4, 0.6) * 4
    found = verdict(replace(QUIET, excesses=excesses), median=Interval(-0.01, -0.1, 0.08))
    reach = 4.5946 * math.sqrt(0.01 * 8 / 7) / math.sqrt(8)
    assert found.ratio == pytest.approx(1 / 1.5)
    assert (found.low, found.high) == pytest.approx(
        (1 / (1.5 + reach), 1 / (1.5 - reach)), rel=1e-4
    )


@pytest.mark.parametrize(("excess", "answer"), [(0.2, "slower"), (-0.2, "inconclusive")])
def test_a_median_and_a_mean_have_to_agree(excess: float, answer: str) -> None:
    found = verdict(by(excess, 8), median=SLOWER)
    assert found.answer == answer
    assert found.ratio == pytest.approx(math.exp(-0.1))
    assert ("the median is slower (0.905), the mean time faster (1.2" in found.why) == (
        answer == "inconclusive"
    )


def test_without_two_rounds_only_the_interval_counts() -> None:
    assert verdict(None, median=SLOWER).answer == "slower"
    assert verdict(None, median=EVEN).answer == "inconclusive"
    assert verdict(None, median=EVEN).mean is None
