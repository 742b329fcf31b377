"""The picture of a timeline, and its tables: what is where, cell by cell."""

import re
from html.parser import HTMLParser

import pytest

from flowos.model import SliceLog
from flowos.report import timeline_html

from .test_plots import Drawing, Element, image_after
from .test_tables import Reader
from .test_timeline import SMALL, log_of, ran


def picture(log: SliceLog) -> Drawing:
    return image_after(timeline_html(log), '<div class="lanes">')


def boxes(found: list[Element]) -> list[list[float]]:
    """x, y, width, height of each."""
    return [each.at("x", "y", "width", "height") for each in found]


def rows_of(log: SliceLog, name: str) -> list[list[str]]:
    """Of the table of this name, with its head."""
    table = timeline_html(log).partition(f'aria-labelledby="{name}"')[2].partition("</table>")[0]
    return Reader(f"<div {table}").table.rows


class Labels(HTMLParser):
    """Names left of the picture: each with its height."""

    def __init__(self, log: SliceLog) -> None:
        super().__init__()
        self.found: list[tuple[str, int]] = []
        page = timeline_html(log).partition('<div class="lanes">')[2]
        self.feed(page.partition("</ul>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "li":
            height = re.fullmatch(r"height:(\d+)px", dict(attrs)["style"] or "")
            assert height
            self.found.append((dict(attrs)["title"] or "", int(height[1])))


def test_a_bar_is_in_the_row_of_its_worker_from_its_start_to_its_end() -> None:
    """10 seconds are 10 000 wide; a row of 22 holds a bar of 20."""
    drawn = picture(SMALL)
    assert drawn.all("svg")[0].attributes["viewbox"] == "0 0 10000 66"
    bars = drawn.all("rect", "bar")
    assert boxes(bars) == [
        [2000, 0, 5000, 20],  # solve, the longest together
        [7000, 0, 3000, 20],
        [0, 0, 1000, 20],  # load
        [0, 44, 2000, 20],
        [9990, 22, 10, 20],  # write, of no time, and within the picture
    ]
    assert [bar.kind for bar in bars] == [*["bar"] * 4, "bar no"], "one was kept"
    groups = [group.kind for group in drawn.all("g", "series")]
    assert groups == ["series s0", "series s1", "series s2"]
    titles = [title.text.replace("\xa0", " ") for title in drawn.all("title")]
    assert "load on vm:0: 1.00 s from 0 s on; 10.0 B in, 4.00 kB out" in titles
    assert "write on vm:2: 0 s from 10.0 s on; 0 B in, 0 B out; its result was kept, and found" in (
        titles
    )
    (failed,), (again,) = drawn.all("path", "failed"), drawn.all("path", "again")
    assert failed.attributes["d"] == "M7000 0v22", "where it ended"
    assert again.attributes["d"] == "M7000 0v22", "where it began"


def test_rows_have_tracks_and_times_lines_and_the_longest_wait_is_marked() -> None:
    drawn = picture(SMALL)
    tracks = [track.at("y", "width", "height") for track in drawn.all("rect", "track")]
    assert tracks == [[y, 10_000, 20] for y in (0, 22, 44)]
    (idle,), (grid,) = drawn.all("rect", "idle"), drawn.all("path", "grid")
    assert boxes([idle]) == [[0, 22, 10_000, 20]], "vm:2, until its task of no time"
    assert grid.attributes["d"] == "".join(f"M{x} 0v66" for x in range(2000, 12_000, 2000))
    places = re.findall(r"left:([\d.]+)%\">([^<]+)<", timeline_html(SMALL))
    assert places == [(f"{10 * n}.0", f"{n}\xa0s") for n in (0, 2, 4, 6, 8)], "the last has no room"


def test_a_pause_is_a_line_where_it_was_cut_out() -> None:
    drawn = picture(log_of(ran("a", "vm:0", 0, 10), ran("a", "vm:0", 3610, 10)))
    (step,) = drawn.all("path", "step")
    assert step.attributes["d"] == "M5000 0v22"
    assert boxes(drawn.all("rect", "bar")) == [[0, 0, 5000, 20], [5000, 0, 5000, 20]]


def test_a_name_is_at_its_row_or_at_the_first_of_as_many_as_it_needs() -> None:
    assert Labels(SMALL).found == [("vm:0", 22), ("vm:2", 22), ("vm:10", 22)]
    nested = log_of(ran("outer", "vm:0", 0, 9), ran("inner", "vm:0", 1, 2), ran("a", "vm:1", 0, 1))
    assert Labels(nested).found == [("vm:0", 22), ("", 22), ("vm:1", 22)]
    thin = Labels(log_of(*(ran("a", f"vm:{i}", 0, 1) for i in range(100)))).found
    assert thin[:2] == [("vm:0", 18), ("vm:3", 18)], "three rows of 6"
    assert thin[-1] == ("vm:99", 6)
    assert sum(height for _, height in thin) == 600


def test_tables_have_the_times_of_each_task_and_of_each_worker() -> None:
    assert rows_of(SMALL, "by-task") == [
        [
            "task",
            "runs",
            "failed",
            "repeated",
            "found",
            "total",
            "share",
            "median",
            "p90",
            "longest",
            "in",
            "out",
        ],
        ["solve", "2", "1", "1", "0", "8.00 s", "73%", *_times(3, 5, 5), "8.00 kB", "8.00 B"],
        ["load", "2", "0", "0", "0", "3.00 s", "27%", *_times(1, 2, 2), "10.0 B", "12.0 kB"],
        ["write", "0", "0", "0", "1", "0 s", "0.0%", "0 s", "0 s", "0 s", "0 B", "0 B"],
    ]
    assert rows_of(SMALL, "by-worker") == [
        ["worker", "tasks", "busy", "share", "longest", "start"],
        ["vm:0", "3", "9.00 s", "90%", "1.00 s", "1.00 s"],
        ["vm:2", "1", "0 s", "0.0%", "10.0 s", "0 s"],
        ["vm:10", "1", "2.00 s", "20%", "8.00 s", "2.00 s"],
    ]
    assert rows_of(SMALL, "longest")[1:3] == [
        ["solve", "vm:0", "2.00 s", "5.00 s", "4.00 kB", "0 B", "1"],
        ["solve", "vm:0", "7.00 s", "3.00 s", "4.00 kB", "8.00 B", "2"],
    ]
    (failed,) = rows_of(SMALL, "failures")[1:]
    assert failed == ["solve", "vm:0", "2.00 s", "5.00 s", "1", "task 'solve' raised <b>"]


def test_numbers_stand_on_the_right_and_a_long_reason_may_wrap() -> None:
    table = timeline_html(SMALL).partition('aria-labelledby="failures"')[2]
    _, cells = Reader(f"<div {table.partition('</table>')[0]}").table.classes
    assert cells == ["", "", "n", "n", "n", "wrap"]


def test_the_page_counts_nodes_and_says_whether_its_table_has_all_tasks() -> None:
    page = timeline_html(SMALL)
    assert '<div class="meter"><i style="width:37%">' in page
    assert "<summary>The numbers: all tasks<" in page
    many = log_of(*(ran("a", f"vm{i % 2}:0", float(i), 1) for i in range(102)))
    page = timeline_html(many)
    assert "102 tasks on 2 workers of 2 nodes, from " in page
    assert "<summary>The numbers: 100 longest tasks<" in page
    assert len(rows_of(many, "longest")) == 101


def test_rare_columns_are_there_where_they_have_a_number() -> None:
    again = log_of(ran("a", "vm:0", 0, 1), ran("a", "vm:0", 1, 1, attempt=2))
    assert rows_of(again, "by-task")[0][:4] == ["task", "runs", "repeated", "total"]
    assert "1 further attempt<" in timeline_html(again)
    assert "no further attempts<" in timeline_html(log_of(ran("a", "vm:0", 0, 1)))


@pytest.mark.parametrize(
    ("workers", "said"),
    [(1, False), (2, True)],
)
def test_of_several_workers_the_longest_wait_is_in_the_first_sentences(
    workers: int, said: bool
) -> None:
    log = log_of(
        ran("a", "vm:0", 0, 1), ran("b", f"vm:{workers - 1}", 3, 6), ran("a", "vm:0", 9, 1)
    )
    page = timeline_html(log).replace("\xa0", " ")
    words = "The longest that a worker waited: 8.00 s, vm:0 from 1.00 s on, while b ran on vm:1."
    assert (words in page) is said
    assert ("The longest that a worker waited" in page) is said
    (idle,) = picture(log).all("rect", "idle")
    start, seconds = (1, 8) if said else (1, 2)
    assert boxes([idle]) == [[1000 * start, 0, 1000 * seconds, 20]]
    busy = timeline_html(log_of(ran("a", "vm:0", 0, 1), ran("a", "vm:1", 0, 1)))
    assert "The longest that a worker waited" not in busy, "none did"
    assert "flowos show tasks.log --trace trace.json" in page


@pytest.mark.parametrize(("names", "last"), [(8, "t7"), (9, "2 other tasks")])
def test_the_last_colour_is_that_of_all_other_tasks(names: int, last: str) -> None:
    log = log_of(*(ran(f"t{i}", "vm:0", 100.0 * i, 90.0 - i) for i in range(names)))
    legend = timeline_html(log).partition('class="legend"')[2].partition("</ul>")[0]
    shown = re.findall(r'class="k(\d)".*?<span>([^<]+)', legend)
    assert shown == [*((str(i), f"t{i}") for i in range(7)), ("7", last)]


def test_a_bar_that_stands_for_several_tasks_says_so_below_the_picture() -> None:
    short = [ran("a", "vm:0", i * 0.01, 0.005) for i in range(3)]
    one = timeline_html(log_of(*short, ran("b", "vm:0", 1, 99)))
    assert "1 bar stands for 3 tasks: those that are shorter than 100\xa0ms" in one
    assert "for 3 tasks" not in timeline_html(log_of(*short))


def test_a_bar_of_several_tasks_has_the_colour_of_the_one_that_took_most() -> None:
    short = ran("a", "vm:0", 0, 0.005), ran("b", "vm:0", 0.01, 0.02)
    drawn = picture(log_of(*short, ran("long", "vm:0", 1, 99)))
    assert [group.kind for group in drawn.all("g")] == ["series s0", "series s1"]
    assert boxes(drawn.all("rect", "bar")) == [[100, 0, 9900, 20], [0, 15, 10, 5]]


def _times(*seconds: int) -> list[str]:
    return [f"{each}.00 s" for each in seconds]
