"""Where a number lies among those of other runs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.plan import MIN_OTHERS, HistoryPoint, place_among

positive = st.floats(min_value=1e-9, max_value=1e12)


def point(value: float, number: int = 99, *, trusted: bool = True, of: str = "a") -> HistoryPoint:
    started = f"2026-11-{number:02}T10:00:00Z"
    return HistoryPoint(run=f"r{number}", machine=of, started=started, value=value, trusted=trusted)


OTHERS = [point(v, n, of="ab"[n % 2]) for n, v in enumerate((10.0, 12.0, 11.0, 13.0, 14.0))]


@pytest.mark.parametrize(
    ("unit", "value", "answer"),
    [
        ("byte/s", 10.0, "within"),
        ("byte/s", 14.0, "within"),
        ("byte/s", 9.99, "worse"),
        ("byte/s", 14.01, "better"),
        ("second", 9.99, "better"),
        ("second", 14.01, "worse"),
    ],
)
def test_it_is_within_the_range_of_the_others_or_beyond(
    unit: str, value: float, answer: str
) -> None:
    place = place_among("L", "m", unit, point(value), OTHERS)
    assert place
    assert place.answer == answer
    assert (place.median, place.low, place.high) == (12.0, 10.0, 14.0)
    assert (place.runs, place.machines) == (5, 2)
    assert [each.run for each in place.history] == ["r0", "r1", "r2", "r3", "r4", "r99"]


def test_with_fewer_others_than_needed_nothing_is_said() -> None:
    assert len(OTHERS) == MIN_OTHERS
    assert place_among("L", "m", "byte/s", point(1.0), OTHERS[1:]) is None
    odd = [*OTHERS[1:], point(math.nan, 6), point(math.inf, 7)]
    assert place_among("L", "m", "byte/s", point(1.0), odd) is None
    assert place_among("L", "m", "byte/s", point(math.nan), OTHERS) is None


def test_numbers_that_are_not_trusted_count_only_without_enough_others() -> None:
    marked = [point(v, 10 + n, trusted=False) for n, v in enumerate((1.0, 2.0))]
    place = place_among("L", "m", "byte/s", point(9.0), [*OTHERS, *marked])
    assert place
    assert (place.answer, place.runs, len(place.history)) == ("worse", 5, 8)
    few = place_among("L", "m", "byte/s", point(9.0), [*OTHERS[1:], *marked])
    assert few
    assert (few.answer, few.runs) == ("within", 6)


@given(st.lists(positive, min_size=6, max_size=6, unique=True))
def test_of_alike_runs_one_is_the_worst_and_one_the_best(values: list[float]) -> None:
    points = [point(value, n) for n, value in enumerate(values)]
    answers = []
    for own in points:
        place = place_among("L", "m", "byte/s", own, [p for p in points if p != own])
        assert place
        answers.append(place.answer)
    assert sorted(answers) == ["better", *["within"] * 4, "worse"]
