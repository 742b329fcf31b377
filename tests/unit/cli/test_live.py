"""The line of progress: what is left of the time, and that it is out."""

import io

import pytest

from flowos.cli._live import Live
from flowos.model import Progress


@pytest.mark.parametrize(
    ("left", "line"),
    [
        (None, "stream"),
        (12.2, "  13 s left  stream"),
        (0.3, "   1 s left  stream"),
        (0.0, "time is out  stream"),
        (-600.0, "time is out  stream"),
    ],
)
def test_no_line_says_that_nothing_is_left_while_something_goes_on(
    left: float | None, line: str
) -> None:
    out = io.StringIO()
    Live(out).show(Progress(doing="stream", left_seconds=left))
    assert out.getvalue() == line + "\n"
