"""How the time of a run is shared out among its probes."""

from itertools import count

import pytest

from flowos.model import Case, Design
from flowos.operations.measure import round_seconds
from flowos.operations.measure._time import (
    at_pace,
    kept_for_ceilings,
    longest_sample,
    once_each,
    seconds_for,
)

NUMBERS = count()


def part(*seconds: float, rounds: int = 1) -> Design:
    """A probe with cases that take so long each."""
    cases = {Case("p", (("n", str(next(NUMBERS))),)): taken for taken in seconds}
    return Design(cases=tuple(cases), seconds=cases, min_rounds=rounds)


def taken(parts: list[Design], left: float) -> list[float]:
    """What each gets where each takes all that it may."""
    found = []
    for done in range(len(parts)):
        found.append(seconds_for(parts[done:], [1] * len(parts[done:]), left))
        left -= found[-1]
    return found


def test_what_is_compared_is_measured_there_and_back() -> None:
    assert round_seconds(part(3.0)) == 3.0
    assert round_seconds(part(3.0, 2.0)) == 10.0
    assert round_seconds(part(3.0, rounds=2)) == 6.0


def test_where_all_fits_each_has_its_share() -> None:
    assert taken([part(1, 1), part(1, 1, rounds=3)], 32) == pytest.approx([8, 24])


def test_each_has_a_whole_round_before_any_has_another() -> None:
    """By their shares they would get 2, 10 and 2 s."""
    assert taken([part(1, 1), part(1, 1, rounds=5), part(1, 1)], 14) == pytest.approx(
        [4.4, 5.2, 4.4]
    )


@pytest.mark.parametrize("left", [6.0, 8.0, 11.0])
def test_each_case_is_measured_once_before_any_is_measured_there_and_back(left: float) -> None:
    parts = [part(1, 1), part(1, 1, rounds=4)]
    assert left - seconds_for(parts, [1, 1], left) >= once_each(parts[1:])


def test_what_lacks_rounds_gets_them_before_others_are_repeated() -> None:
    """By their shares it would get 11 s."""
    compared, others = part(1, 1, rounds=4), [part(3, 3), part(1)]
    assert seconds_for([compared, *others], [3, 0, 0], 20.0) == pytest.approx(13.2)
    assert seconds_for([compared, *others], [3, 0, 0], 40.0) == pytest.approx(40 * 16 / 29)


def test_what_is_too_long_for_the_time_takes_what_is_left() -> None:
    assert seconds_for([part(100.0), part(1.0)], [1, 1], 10.0) == 10.0


def test_what_takes_no_time_gets_none() -> None:
    assert seconds_for([part(), part()], [1, 1], 10.0) == 0.0


def test_for_ceilings_a_fifth_of_the_time_is_kept_at_most() -> None:
    assert kept_for_ceilings([part(20.0)], 24.0) == pytest.approx(4.8)
    assert kept_for_ceilings([part(1.0), part(2.0)], 100.0) == pytest.approx(3.3)
    assert kept_for_ceilings([], 100.0) == 0.0


def test_a_case_may_take_what_others_can_spare_and_many_times_its_estimate_in_any_case() -> None:
    assert longest_sample(10.0, left=170.0, reserve=60.0) == 110.0
    assert longest_sample(10.0, left=70.0, reserve=60.0) == 80.0


@pytest.mark.parametrize(
    ("took", "estimated", "seconds"), [(0, 0, 2), (1, 2, 2), (3, 2, 3), (99, 2, 6)]
)
def test_what_others_took_tells_how_long_the_next_takes_within_limits(
    took: float, estimated: float, seconds: float
) -> None:
    assert once_each([at_pace(part(2.0), took, estimated)]) == seconds
