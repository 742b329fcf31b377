"""The line of progress: what is left of the time, and that it is out."""

import io

import pytest

from flowos.cli._live import Live
from flowos.model import Case, Progress, Sample


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


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (
            Progress(doing="warming", done=1, total=4, detail="25.0%"),
            f"warming [{'#' * 6:.<24}] 25.0%",
        ),
        (Progress(doing="solving", done=0.0, total=1.0), f"solving [{'.' * 24}]"),
        (Progress(doing="squashing", detail="42 %"), "squashing  42 %"),
    ],
)
def test_what_has_a_total_gets_a_bar(progress: Progress, line: str) -> None:
    out = io.StringIO()
    Live(out).show(progress)
    assert out.getvalue() == line + "\n"


def test_a_number_is_shown_in_a_unit_that_reads_well() -> None:
    out = io.StringIO()
    case = Case(probe="flops", levels=(("bits", "64"),))
    sample = Sample(run="r", case=case, round=3, metric="rate", unit="flop/s", values=(5.25e10,))
    Live(out, verbose=True).show_sample(sample)
    assert out.getvalue() == "round 3  flops bits=64  rate 52.5 Gflop/s\n"
