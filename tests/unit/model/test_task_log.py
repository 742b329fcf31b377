"""Tasks in the log of a slice: how long they took, and what no task has."""

from typing import Any

import pytest

from flowos.model import LoggedTask


def logged(start: float, end: float, **more: Any) -> LoggedTask:
    return LoggedTask(task="t", worker="vm:1", start=start, end=end, bytes_in=0, **more)


def test_a_task_took_the_time_from_its_start_to_its_end() -> None:
    assert logged(1000.0, 1002.5).seconds == 2.5
    assert logged(0.0, 0.0).seconds == 0.0


@pytest.mark.parametrize(
    ("start", "end"),
    [(3.0, 2.0), (-1.0, 2.0), (1.0, 1e11), (float("nan"), 2.0), (1.0, float("nan"))],
)
def test_times_of_no_task_are_refused(start: float, end: float) -> None:
    with pytest.raises(ValueError, match=rf"its start {start!r} and end .* are no times of a task"):
        logged(start, end)


@pytest.mark.parametrize("more", [{"bytes_out": -1}, {"attempt": 0}])
def test_sizes_and_attempts_below_the_least_are_refused(more: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="may not be negative"):
        logged(1.0, 2.0, **more)
    least = logged(1.0, 2.0, bytes_out=0, attempt=1)
    assert least == logged(1.0, 2.0)
