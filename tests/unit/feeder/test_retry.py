"""How long is waited before a source is tried again."""

import random
from itertools import pairwise

import pytest

from flowos.feeder._retry import _pause_after


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(7)


@pytest.mark.parametrize("tries", [*range(12), 100, 1023, 1024, 10**6])
def test_pauses_are_spread_around_a_time_that_doubles_up_to_a_quarter_of_a_minute(
    tries: int,
) -> None:
    middle = min(0.1 * 2 ** min(tries, 20), 15.0)
    pauses = [_pause_after(tries) for _ in range(400)]
    assert all(0.5 * middle <= pause <= 1.5 * middle for pause in pauses)
    in_tenths = {int(10 * (pause / middle - 0.5)) for pause in pauses}
    assert in_tenths >= set(range(10)), "some of the range is never drawn"


def test_callers_that_failed_together_do_not_come_back_together() -> None:
    pauses = sorted(_pause_after(5) for _ in range(100))
    assert len(set(pauses)) == 100
    assert max(b - a for a, b in pairwise(pauses)) < 0.2 * 3.2
