"""The log of a slice as a page, as a trace, and in a terminal."""

import random
import re
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pytest

from flowos.model import LoggedTask, SliceLog
from flowos.report import chrome_trace, log_text, timeline_html
from flowos.report._timeline import timeline_of, times_by_task
from flowos.report._timeline_bars import MAX_LANES, drawn_rows

from .test_page import read

BEGIN = 1_795_419_300.0


def ran(task: str, worker: str, start: float, seconds: float, **more: Any) -> LoggedTask:
    start += BEGIN
    return LoggedTask(
        task=task, worker=worker, start=start, end=start + seconds, **{"bytes_in": 0, **more}
    )


def log_of(*tasks: LoggedTask, **more: Any) -> SliceLog:
    ordered = tuple(sorted(tasks, key=lambda each: each.start))
    return SliceLog(path=PurePath("kept/tasks.log"), tasks=ordered, **more)


def many(count: int, workers: int = 16) -> SliceLog:
    """Tasks of about 10 ms, from 25 functions; one in a thousand failed, one of them is long."""
    rng, ends = random.Random(7), [0.0] * workers
    tasks = []
    for i in range(count):
        at = i % workers
        name = f"task{rng.randrange(5) if i % 10 else rng.randrange(25)}"
        seconds = 30.0 if i == 5 else rng.expovariate(100)
        why = {"error": "no"} if i % 1000 == 7 else {}
        tasks.append(ran(name, f"vm{at // 8}:{at % 8}", ends[at], seconds, **why))
        ends[at] += seconds + rng.expovariate(1000)
    return log_of(*tasks)


SMALL = log_of(
    ran("load", "vm:0", 0, 1, bytes_in=10, bytes_out=4000),
    ran("load", "vm:10", 0, 2, bytes_out=8000),
    ran("solve", "vm:0", 2, 5, bytes_in=4000, error="task 'solve' raised <b>"),
    ran("solve", "vm:0", 7, 3, bytes_in=4000, bytes_out=8, attempt=2, rounds=(3, 7)),
    ran("write", "vm:2", 10, 0, cached=True),
)


@pytest.mark.parametrize(
    ("start", "end", "more"),
    [
        (2.0, 1.0, {}),
        (-1.0, 1.0, {}),
        (1.0, 1e300, {}),
        (float("nan"), 1.0, {}),
        (1.0, 2.0, {"bytes_in": -1}),
        (1.0, 2.0, {"bytes_out": -1}),
        (1.0, 2.0, {"attempt": 0}),
    ],
)
def test_times_and_sizes_that_no_task_has_are_refused(
    start: float, end: float, more: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"are no times of a task|may not be negative"):
        LoggedTask(task="a", worker="b:0", start=start, end=end, **{"bytes_in": 0, **more})


def test_times_are_added_up_by_task_and_what_did_not_run_takes_none() -> None:
    solve, load, write = times_by_task(SMALL.tasks)
    assert (solve.task, solve.seconds, solve.total) == ("solve", (3.0, 5.0), 8.0)
    assert (solve.failed, solve.repeated, solve.cached) == (1, 1, 0)
    assert (load.bytes_in, load.bytes_out, load.failed) == (10, 12_000, 0)
    assert (write.seconds, write.total, write.cached) == ((), 0.0, 1)
    assert write.quantile(0.5) == 0.0


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(1, 0.5, 0), (2, 0.5, 0), (3, 0.5, 1), (10, 0.9, 8), (7, 1, 6)]
)
def test_a_quantile_is_the_least_time_that_so_many_take_at_most(
    count: int, share: float, expected: int
) -> None:
    (times,) = times_by_task([ran("a", "vm:0", 0, float(i)) for i in range(count)])
    assert times.quantile(share) == expected


def test_workers_are_in_the_order_of_their_numbers_with_their_busy_time() -> None:
    timeline = timeline_of(SMALL.tasks)
    assert [(lane.worker, lane.busy) for lane in timeline.lanes] == [
        ("vm:0", 9.0),
        ("vm:2", 0.0),
        ("vm:10", 2.0),
    ]
    assert (timeline.seconds, timeline.nothing_ran, timeline.paused) == (10.0, 0.0, 0.0)
    assert timeline.busy_share == pytest.approx(11 / 30)


def test_the_longest_wait_names_what_ran_for_most_of_it() -> None:
    tasks = [ran("a", "vm:0", 0, 10), ran("b", "vm:1", 0, 2), ran("c", "vm:1", 9, 1)]
    idle = timeline_of(tasks).idle
    assert (idle.worker, idle.start, idle.end) == ("vm:1", 2.0, 9.0)
    assert idle.meanwhile is not None
    assert idle.meanwhile.logged.task == "a"
    short = [ran("a", "vm:0", float(i), 0.5) for i in range(10)]
    assert timeline_of([*short[:2], ran("b", "vm:1", 1.5, 0.5), *short[2:]]).idle.meanwhile is None
    assert timeline_of(short[:2]).idle.meanwhile is None


@pytest.mark.parametrize(("seconds", "named"), [(3.5, False), (3.75, True)])
def test_what_runs_for_half_of_a_wait_is_not_named(seconds: float, named: bool) -> None:
    tasks = [ran("b", "vm:1", 0, 2), ran("a", "vm:0", 2, seconds), ran("c", "vm:1", 9, 1)]
    tasks += [ran("d", "vm:0", 6, 1), ran("d", "vm:0", 7.5, 1), ran("d", "vm:0", 9, 1)]
    idle = timeline_of(tasks).idle
    assert (idle.worker, idle.seconds) == ("vm:1", 7.0)
    assert (idle.meanwhile is not None) == named


def test_work_after_a_gap_is_no_part_of_it() -> None:
    tasks = [ran("a", "vm:0", 0, 10), ran("a", "vm:0", 70, 70)]
    assert len(timeline_of(tasks).starts) == 1


def test_short_tasks_of_a_cell_are_a_bar_as_high_as_they_were_busy() -> None:
    tasks = [ran("long", "vm:0", 0, 100)]
    tasks += [ran("x", "vm:0", 100.125 + i * 0.01, 0.005) for i in range(4)]  # one cell of 0.2 s
    tasks += [ran("y", "vm:0", 100.5, 0.05), ran("end", "vm:0", 199, 1)]
    drawn = drawn_rows(timeline_of(tasks))
    assert drawn.cell_seconds == pytest.approx(0.2)
    (row,) = drawn.rows
    bars = [(b.start, b.end, b.busy, len(b.tasks)) for b in row.bars]
    assert bars == [
        pytest.approx((0.0, 100.0, 100.0, 1), abs=1e-5),
        pytest.approx((100.0, 100.2, 0.02, 4), abs=1e-5),
        pytest.approx((100.5, 100.55, 0.05, 1), abs=1e-5),
        pytest.approx((199.0, 200.0, 1.0, 1), abs=1e-5),
    ]
    page = timeline_html(log_of(*tasks)).partition('<div class="lanes">')[2]
    heights = [int(h) for h in re.findall(r'class="bar" x="\d+" y="\d+" [^>]*height="(\d+)"', page)]
    assert sorted(heights) == [2, 20, 20, 20]  # a tenth, and whole ones


def test_long_pauses_are_left_out_of_time_and_shares() -> None:
    tasks = [ran("a", "vm:0", 0, 10), ran("a", "vm:0", 3610, 10), ran("a", "vm:0", 3625, 5)]
    timeline = timeline_of(tasks)
    assert (timeline.seconds, timeline.paused) == (30.0, 3600.0)
    assert timeline.starts == ((BEGIN, 0.0), (BEGIN + 3610, 10.0))
    assert timeline.nothing_ran == pytest.approx(5.0)
    assert timeline.lanes[0].busy == pytest.approx(25.0)
    page = timeline_html(log_of(*tasks))
    assert "1 pause, 60.0\xa0min in all, left out" in page
    assert "60.0\xa0min are left out here, in which nothing ran" in page
    assert re.findall(r"left:[\d.]+%\">([^<]*)<", page) == ["0\xa0s", "60.2\xa0min"]


@pytest.mark.parametrize(("pause", "cut"), [(59.0, 0), (61.0, 1)])
def test_a_pause_is_at_least_a_minute_and_longer_than_all_work(pause: float, cut: int) -> None:
    first, then = ran("a", "vm:0", 0, 1), ran("a", "vm:0", 1 + pause, 1)
    assert len(timeline_of([first, then]).starts) == 1 + cut
    longer = ran("b", "vm:1", 0, 200)
    after = ran("a", "vm:0", 200 + pause, 1)
    assert len(timeline_of([first, longer, after]).starts) == 1


def test_ends_of_pauses_that_are_close_together_have_one_time() -> None:
    tasks = [ran("a", "vm:0", 1000.0 * i, 10) for i in range(40)]
    page = timeline_html(log_of(*tasks))
    assert "39 pauses" in page
    assert len(re.findall(r"left:[\d.]+%", page)) <= 5


def test_tasks_that_run_slices_have_several_rows_and_clocks_may_step() -> None:
    tasks = [
        ran("outer", "vm:0", 0, 10),
        ran("inner", "vm:0", 1, 2),
        ran("inner", "vm:0", 2.9995, 1),
    ]
    (lane,) = timeline_of(tasks).lanes
    assert [[each.logged.task for each in row] for row in lane.rows] == [
        ["outer"],
        ["inner", "inner"],
    ]
    assert lane.busy == 10.0
    deep = [ran("a", "vm:0", 0.1 * i, 100) for i in range(20)]
    (lane,) = timeline_of(deep).lanes
    assert len(lane.rows) == 8
    assert sum(map(len, lane.rows)) == 20


def test_a_worker_is_busy_once_where_its_tasks_overlap() -> None:
    spans = [(0, 1), (5, 9), (6, 7), (8, 11)]
    tasks = [ran(f"{start} to {end}", "vm:0", start, end - start) for start, end in spans]
    (lane,) = timeline_of(tasks).lanes
    assert lane.busy == 7.0
    assert (lane.longest_idle.start, lane.longest_idle.end) == (1.0, 5.0)
    assert [[each.logged.task for each in row] for row in lane.rows] == [
        ["0 to 1", "5 to 9"],
        ["6 to 7", "8 to 11"],
    ]


def test_a_page_loads_nothing_and_says_what_a_log_says() -> None:
    page = timeline_html(SMALL)
    reader = read(page)
    assert (reader.loads, reader.handlers) == ([], [])
    assert "script" not in reader.tags
    assert "5 tasks on 3 workers of 1 node, from 2026-11-23 07:35:00 to 07:35:10 UTC." in page
    assert (
        "solve on vm:0: 3.00\xa0s from 7.00\xa0s on; 4.00\xa0kB in, 8.00\xa0B out; "
        "round 3, 7; attempt 2" in page
    )
    assert "failed: task &#x27;solve&#x27; raised &lt;b&gt;" in page
    assert "its result was kept, and found" in page
    for words in ("What failed", "another attempt", "kept result", "the longest wait"):
        assert words in page
    assert page.count('class="failed"') == page.count('class="again"') == 2  # and in the legend


def test_marks_and_columns_of_what_did_not_happen_are_left_out() -> None:
    page = timeline_html(log_of(ran("a", "vm:0", 0, 1), ran("a", "vm:0", 1, 1)))
    for words in ("What failed", "another", "<th>found", "Kept", "the longest w"):
        assert words not in page


def test_an_empty_log_is_a_page_that_says_so() -> None:
    page = timeline_html(log_of())
    assert "No task is in this log." in page
    assert "<svg" not in page


def test_a_damaged_and_unfinished_log_is_a_page_that_says_so() -> None:
    page = timeline_html(log_of(ran("a", "vm:0", 0, 1), damaged=2, damage="x:3 <", unfinished=True))
    assert "2 lines of the log could not be read and is not here. The first: x:3 &lt;" in page
    assert "the slice still writes, or was killed" in page


def test_hostile_names_stay_text() -> None:
    evil = "<script>alert(1)</script>\x1b[2J\ud800"
    page = timeline_html(log_of(ran(evil, evil, 0, 1, error=evil)))
    assert "script" not in read(page).tags
    page.encode()
    shown = log_text(log_of(ran(evil, "vm:0", 0, 1)))
    assert "\x1b" not in shown
    assert shown.endswith("alert(1)</script>?[2J?\n")


def test_the_command_for_a_log_is_one_that_a_shell_takes() -> None:
    log = replace(log_of(ran("a", "vm:0", 0, 1)), path=PurePath("kept/my tasks.log"))
    assert "flowos show &#x27;my tasks.log&#x27; --trace" in timeline_html(log)


def test_tasks_without_duration_are_drawn() -> None:
    page = timeline_html(log_of(*(ran("a", "vm:0", 0, 0, cached=True) for _ in range(5000))))
    assert page.count("<rect") < 20
    assert "5000 tasks on vm:0" in page


def test_bars_that_are_too_many_are_drawn_coarser() -> None:
    tasks = [ran("t", f"vm:{w}", 10.0 * i, 1.0) for w in range(16) for i in range(900)]
    drawn = drawn_rows(timeline_of(log_of(*tasks).tasks))
    assert sum(len(bar.tasks) for row in drawn.rows for bar in row.bars) == 14_400
    assert sum(len(row.bars) for row in drawn.rows) < 9_001
    assert drawn.merged[0] > 0


@pytest.mark.no_cover
def test_a_hundred_thousand_tasks_are_a_page_that_opens() -> None:
    log = many(100_000)
    page = timeline_html(log)
    assert len(page.encode()) < 2_000_000
    (bars, tasks) = (int(n) for n in re.findall(r"(\d+) bars stand for (\d+) tasks", page)[0])
    drawn = drawn_rows(timeline_of(log.tasks))
    assert drawn.merged == (bars, tasks)
    assert sum(len(bar.tasks) for row in drawn.rows for bar in row.bars) == 100_000
    assert sum(bar.failed for row in drawn.rows for bar in row.bars) == 100
    assert sum(len(row.bars) for row in drawn.rows) < 9_001
    assert "18 other tasks" in page
    assert "longest tasks" in page


def test_a_bar_of_many_says_how_many_of_which_and_how_busy() -> None:
    tasks = [
        ran(f"t{i % 6}", "vm:0", i * 1e-3, 5e-4, error="no" if i < 2 else "") for i in range(60)
    ]
    page = timeline_html(log_of(*tasks, ran("long", "vm:1", 0, 600)))
    said = re.findall(r"<title>(60 tasks[^<]*)</title><|<title>(60 tasks[^<]*)</title>", page)
    words = "".join(said[0])
    assert words == (
        "60 tasks on vm:0 from 0\xa0s on, within 600\xa0ms: 10 t0, 10 t1, 10 t2, 10 t3, 20 others; "
        "2 failed"
    )
    few = timeline_html(log_of(*tasks[2:4], ran("long", "vm:1", 0, 600)))
    assert "2 tasks on vm:0 from 0\xa0s on, within 600\xa0ms: 1 t2, 1 t3<" in few


def test_with_very_many_workers_rows_are_thin_and_the_rest_is_said() -> None:
    log = log_of(*(ran("a", f"vm{i // 64}:{i % 64}", i * 0.001, 1) for i in range(MAX_LANES + 3)))
    page = timeline_html(log)
    assert "3 more workers are not drawn" in page
    assert f"height:{4 * MAX_LANES}px" in page
    assert page.count("<rect") < MAX_LANES + 20
    assert f"vm{(MAX_LANES + 2) // 64}:" in page  # in the table of workers


def test_more_failures_than_a_person_reads_are_counted() -> None:
    tasks = [ran("a", "vm:0", float(i), 1, error="no") for i in range(430)]
    assert "30 more rows of this table left out." in timeline_html(log_of(*tasks))


def test_very_many_and_very_long_names_are_a_page_too() -> None:
    tasks = [ran(f"{i}{'x' * 9000}{i}", "vm:0", i * 1e-3, 1e-3) for i in range(3000)]
    page = timeline_html(log_of(*tasks))
    assert len(page) < 1_000_000
    assert "2600 more rows of this table left out." in page
    assert "xx\N{HORIZONTAL ELLIPSIS}xx" in page


def test_a_log_of_two_days_says_both() -> None:
    page = timeline_html(log_of(ran("a", "vm:0", 0, 90_000)))
    assert "from 2026-11-23 07:35:00 to 2026-11-24 08:35:00 UTC" in page


@pytest.mark.parametrize(
    ("seconds", "ticks", "time"),
    [
        (599.0, ["0", "200", "400"], "599\xa0s"),
        (600.0, ["0", "2", "4", "6", "8"], "10.0\xa0min"),
        (7200.0, ["0", "0.5", "1", "1.5"], "2.00\xa0h"),
        (172_800.0, ["0", "0.5", "1", "1.5"], "2.00\xa0d"),
        (0.002, ["0", "0.5", "1", "1.5"], "2.00\xa0ms"),
    ],
)
def test_times_have_the_unit_that_a_person_reads(
    seconds: float, ticks: list[str], time: str
) -> None:
    page = timeline_html(log_of(ran("a", "vm:0", 0, seconds)))
    assert re.findall(r"left:[\d.]+%\">([^<\xa0]*)\xa0", page) == ticks
    assert f'class="big">{time}<' in page


def test_a_trace_has_a_process_for_each_node_and_all_that_is_known() -> None:
    events = chrome_trace([*SMALL.tasks, ran("far", "other:0", 11, 1)])["traceEvents"]
    names = [(e["pid"], e["tid"], e["args"]["name"]) for e in events if e["ph"] == "M"]
    assert names == [
        (0, 0, "other"),
        (0, 0, "other:0"),
        (1, 1, "vm"),
        (1, 1, "vm:0"),
        (1, 2, "vm"),
        (1, 2, "vm:2"),
        (1, 3, "vm"),
        (1, 3, "vm:10"),
    ]
    tasks = [e for e in events if e["ph"] == "X"]
    assert tasks[3]["args"] == {"bytes_in": 4000, "bytes_out": 8, "attempt": 2, "rounds": (3, 7)}
    assert tasks[4]["args"] == {"cached": True}
    assert (tasks[3]["ts"], tasks[3]["dur"]) == (7e6, 3e6)


def test_the_terminal_has_a_line_for_each_task() -> None:
    solve, load, write = log_text(SMALL).splitlines()
    words = "2 runs 8.000 s longest 5.000 s 0.008 MB in 0.000 MB out solve 1 failed 1 repeated"
    assert " ".join(solve.split()) == words
    assert load.endswith("0.000 MB in  0.012 MB out  load")
    assert write.endswith("write  1 found")
    assert log_text(log_of(ran("a", "vm:0", 0, 1))).startswith("       1 run   ")
    assert log_text(log_of()) == ""
