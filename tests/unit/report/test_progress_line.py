"""Progress as one line."""

from dataclasses import replace

import pytest

from flowos.model import Progress
from flowos.report import cut, progress_line


@pytest.mark.parametrize(
    ("left", "line"),
    [
        (None, "sweep"),
        (12.2, "  13 s left  sweep"),
        (999.5, "1000 s left  sweep"),
        (1000.0, "  17 min left  sweep"),
        (5999.0, " 100 min left  sweep"),
        (6000.0, "   2 h left  sweep"),
        (0.0, "time is out  sweep"),
    ],
)
def test_the_time_left_has_the_unit_that_a_person_reads(left: float | None, line: str) -> None:
    assert progress_line(Progress(doing="sweep", left_seconds=left)) == line


def test_no_time_is_out_where_all_is_done() -> None:
    done = Progress(doing="sweep", done=3, total=3, detail="100.0%", left_seconds=0.0)
    assert progress_line(done).startswith("sweep [")
    assert progress_line(replace(done, done=2)).startswith("time is out  sweep [")


def test_what_has_a_total_gets_a_bar_and_what_moves_a_cursor_is_no_part_of_it() -> None:
    shown = progress_line(
        Progress(doing="a\nb\x1b[2J\ud800", done=1, total=2, detail="1/2\r items")
    )
    assert shown == f"a?b?[2J? [{'#' * 12:.<24}] 1/2? items"
    assert progress_line(Progress(doing="a", detail="7 items")) == "a  7 items"


def test_a_bar_is_full_only_where_all_is_done() -> None:
    shown = [progress_line(Progress(doing="a", done=done, total=100)) for done in (0, 99, 100)]
    assert [line.count("#") for line in shown] == [0, 23, 24]


def test_where_two_share_a_line_there_is_no_bar() -> None:
    progress = Progress(doing="a", done=1, total=2, detail="1/2 items", left_seconds=3)
    assert progress_line(progress, bar=False) == "a  1/2 items"


@pytest.mark.parametrize(
    ("line", "columns", "shown"),
    [
        ("abcdef", 3, "abc"),
        ("abc", 3, "abc"),
        ("", 3, ""),
        ("a\u65e5\u672c", 3, "a\u65e5"),
        ("a\u65e5\u672c", 4, "a\u65e5"),
        ("e\u0301e\u0301e", 2, "e\u0301e\u0301"),
    ],
)
def test_a_line_is_cut_to_the_columns_that_it_takes(line: str, columns: int, shown: str) -> None:
    assert cut(line, columns) == shown
