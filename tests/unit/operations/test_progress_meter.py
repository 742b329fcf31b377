"""How fast something goes, and how long the rest will take."""

from flowos.model import Progress
from flowos.operations._progress import ProgressMeter


def paced(*steps: tuple[float, int, int]) -> list[Progress]:
    """Of (time, samples done of 100, bytes)."""
    told: list[Progress] = []
    times = iter([time for time, _, _ in steps])
    pace = ProgressMeter("warming", told.append, lambda: next(times))
    for _, done, bytes_ in steps:
        pace.at(100, done, bytes_)
    return told


def test_the_rate_is_that_of_late_and_the_rest_takes_as_long() -> None:
    told = paced((0.0, 0, 0), (1.0, 10, 1000), (11.5, 40, 1000), (21.0, 60, 20_000))
    assert (told[0].detail, told[0].left_seconds) == ("  0.0%", None)
    assert (told[1].detail, told[1].left_seconds) == (" 10.0%  1.00 kB/s  1.00 kB", 9.0)
    assert told[3].detail == " 60.0%  950 B/s  20.0 kB"
    assert told[3].left_seconds == 40 * 20.0 / 50


def test_it_tells_ten_times_a_second_at_most_and_the_end_in_any_case() -> None:
    told = paced((0.0, 1, 1), (0.05, 2, 2), (0.11, 3, 3), (0.12, 100, 4))
    assert [step.done for step in told] == [1, 3, 100]


def test_where_nothing_moves_no_end_is_promised() -> None:
    assert paced((0.0, 5, 5), (3.0, 5, 5))[-1].left_seconds is None


def test_it_says_what_bound_since_the_rate_is_counted_from() -> None:
    told: list[Progress] = []
    times = iter([0.0, 1.0, 11.5, 21.0])
    pace = ProgressMeter("warming", told.append, lambda: next(times))
    stages, bound = (
        ("fetch", "cache_write"),
        iter([(0.0, 0.0), (1.0, 0.0), (3.0, 7.0), (4.0, 10.0)]),
    )
    for done in (0, 10, 40, 60):
        pace.at(100, done, done * 1000, lambda: dict(zip(stages, next(bound), strict=True)))
    assert told[0].detail == "  0.0%"
    assert told[1].detail == " 10.0%  10.0 kB/s  fetch binds, 100%  10.0 kB"
    assert told[3].detail == " 60.0%  2.50 kB/s  cache write binds, 77%  60.0 kB"
