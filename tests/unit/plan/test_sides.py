from dataclasses import replace

import pytest

from flowos.model import Case, Measurement
from flowos.plan import side_by_side

RATE = Measurement(
    case=Case("stream", (("threads", "2"),)),
    metric="triad",
    unit="byte/s",
    count=8,
    median=40.0,
    low=38.0,
    high=42.0,
    best=43.0,
)
TIME = replace(RATE, case=Case("mpi"), metric="latency", unit="second")
NAMES = ("before", "after")


def test_a_higher_rate_is_a_ratio_above_one_with_the_quartiles_range() -> None:
    faster = replace(RATE, median=50.0, low=49.0, high=51.0)
    (found,) = side_by_side([RATE], [faster], names=NAMES)
    assert (found.base, found.other) == NAMES
    assert found.ratio == pytest.approx(50 / 40)
    assert found.low == pytest.approx(49 / 42)
    assert found.high == pytest.approx(51 / 38)


def test_a_longer_time_is_a_ratio_below_one() -> None:
    slower = replace(TIME, median=50.0, low=49.0, high=51.0)
    (found,) = side_by_side([TIME], [slower], names=NAMES)
    assert found.ratio == pytest.approx(40 / 50)
    assert found.low < found.ratio < found.high


def test_runs_that_were_not_interleaved_never_get_a_verdict() -> None:
    (found,) = side_by_side([RATE], [replace(RATE, median=400.0)], names=NAMES)
    assert found.answer == "cannot tell"
    assert "not interleaved" in found.why


def test_cases_that_one_run_lacks_or_that_are_zero_are_left_out() -> None:
    zero = replace(RATE, low=0.0)
    assert side_by_side([RATE], [TIME, zero], names=NAMES) == ()
