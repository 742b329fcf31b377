"""The page of a slice's log: what ran when, where the time went, what failed."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from flowos.model import LoggedTask, SliceLog, counted
from flowos.report._timeline import Timeline, WorkerLane, timeline_of, times_by_task
from flowos.report._units import share
from flowos.report.page._head import FILE, Frame, document
from flowos.report.page._lanes import lanes
from flowos.report.page._marks import brief, bytes_of, seconds_of
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._tables import scrolled

_LISTED = 400
_LONGEST = 100
_MAX_ERROR = 300


def timeline_html(log: SliceLog, *, frame: Frame = FILE) -> str:
    """One self-contained page: inline style and SVG, no script, nothing loaded."""
    timeline = timeline_of(log.tasks) if log.tasks else None
    parts = [_section(*part) for part in _parts(log, timeline)] if timeline else []
    return document(
        f"{log.path.name}, a timeline by FlowOS",
        tag(
            "header",
            tag("p", tag("b", "FlowOS"), " timeline of a slice", class_="kicker"),
            tag("h1", log.path.name),
            tag("p", _deck(log.tasks, timeline), class_="deck") if timeline else None,
            *(tag("p", words, class_="lede") for words in _lede(log, timeline)),
        ),
        tag("main", *parts, id="main"),
        _footer(log.path.name) if timeline else None,
        skip="Skip to the timeline",
        frame=frame,
    )


def what_ran_when(log: SliceLog) -> Markup:
    """The picture of it, as part of another page."""
    if not log.tasks:
        return tag("p", "No task is in its log yet.", class_="note")
    timeline = timeline_of(log.tasks)
    return join(_cards(log.tasks, timeline), *lanes(timeline))


_HOW_TO_READ = (
    "How to read this: a row is a worker, which is a place of the slice on a node; it has several "
    "rows where tasks run slices themselves. Workers that ran nothing are not in a log. Times of a "
    "task are from when its worker was given it until it had the result, whether it failed or not; "
    "bytes are those of arrays, texts and files among its values. Half of the runs of a task take "
    "at most the median, nine of ten at most p90. Shares are of the time of all tasks together."
)


def _footer(name: str) -> Markup:
    trace = tag("code", f"flowos show {shlex.quote(name)} --trace trace.json")
    more = tag("p", "For each single task: ", trace, ", to be opened in ui.perfetto.dev.")
    return tag("footer", tag("p", _HOW_TO_READ), more)


TimelinePart = tuple[str, str, Sequence[Markup | None]]


def _section(name: str, title: str, content: Sequence[Markup | None]) -> Markup:
    heading = tag("h2", title, id=f"{name}-h")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-h")


def _parts(log: SliceLog, timeline: Timeline) -> Iterator[TimelinePart]:
    yield "when", "What ran when", (_cards(log.tasks, timeline), *lanes(timeline), _longest(log))
    yield "tasks", "Where the time went", (_by_task(log.tasks),)
    yield "workers", "The workers", (_by_worker(timeline),)
    failed = [each for each in log.tasks if each.error]
    if failed:
        yield "failed", "What failed", (_failures(failed, log.tasks[0].start),)


def _deck(tasks: Sequence[LoggedTask], timeline: Timeline) -> str:
    nodes = {lane.worker.rpartition(":")[0] for lane in timeline.lanes}
    places = f"{counted(len(timeline.lanes), 'worker')} of {counted(len(nodes), 'node')}"
    first, last = _clock(tasks[0].start), _clock(max(each.end for each in tasks))
    same = first[:10] == last[:10]
    until = last[11:] if same else last
    return f"{counted(len(tasks), 'task')} on {places}, from {first} to {until} UTC."


def _clock(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}"


def _lede(log: SliceLog, timeline: Timeline | None) -> Iterator[str | Markup]:
    if timeline is None:
        yield "No task is in this log."
    elif len(timeline.lanes) > 1 and timeline.idle.seconds > 0:
        yield f"The longest that a worker waited: {_idle(timeline)}."
    if log.unfinished:
        yield "The last line is not complete: the slice still writes, or was killed."
    if log.damaged:
        lines = f"{counted(log.damaged, 'line')} of the log could not be read and is not here. "
        yield tag("span", lines, f"The first: {log.damage[:_MAX_ERROR]}", class_="warn")


def _idle(timeline: Timeline) -> str:
    idle = timeline.idle
    words = f"{seconds_of(idle.seconds)}, {brief(idle.worker)} from {seconds_of(idle.start)} on"
    task = idle.meanwhile.logged if idle.meanwhile else None
    return f"{words}, while {brief(task.task)} ran on {brief(task.worker)}" if task else words


def _cards(tasks: Sequence[LoggedTask], timeline: Timeline) -> Markup:
    busy = share(timeline.busy_share)
    pauses = len(timeline.starts) - 1
    ran = f"nothing ran for {seconds_of(timeline.nothing_ran)} of it"
    if pauses:
        ran += f"; {counted(pauses, 'pause')}, {seconds_of(timeline.paused)} in all, left out"
    bytes_in, bytes_out = (sum(getattr(t, name) for t in tasks) for name in _BYTES)
    rows = [
        _card("Time", seconds_of(timeline.seconds), ran),
        _card("Workers busy", busy, "of their time, until the last task ended", busy),
        _card("Bytes out", bytes_of(bytes_out), f"{bytes_of(bytes_in)} in"),
        _card("Failed", str(sum(bool(t.error) for t in tasks)), _attempts(tasks)),
    ]
    if cached := sum(t.cached for t in tasks):
        rows.append(_card("Kept results", str(cached), "found instead of computed"))
    return tag("ul", *rows, class_="cards")


_BYTES = ("bytes_in", "bytes_out")


def _attempts(tasks: Sequence[LoggedTask]) -> str:
    again = sum(t.attempt > 1 for t in tasks)
    return f"{counted(again, 'further attempt')}" if again else "no further attempts"


def _card(label: str, value: str, note: str, meter: str = "") -> Markup:
    bar = tag("div", tag("i", style=f"width:{meter}"), class_="meter") if meter else None
    big = tag("p", value, class_="big")
    return tag("li", tag("h3", label), big, bar, tag("p", note, class_="note"), class_="card")


def _table(caption: str, names: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> Markup:
    """The first column names the row; numbers are in those whose names are in _NUMERIC."""
    sides = [("n" if column in _NUMERIC else None) for column in names[1:]]
    lines = [
        tag(
            "tr",
            tag("th", brief(first), scope="row"),
            *(
                tag("td", cell, class_="wrap" if column == "why" else side)
                for cell, column, side in zip(rest, names[1:], sides, strict=True)
            ),
        )
        for first, *rest in rows[:_LISTED]
    ]
    left = len(rows) - len(lines)
    more = tag("p", f"{counted(left, 'more row')} of this table left out.", class_="note")
    table = scrolled(caption, names, lines, name, numeric=_NUMERIC)
    return join(table, more if left else None)


_RARE = ("failed", "repeated", "found")
_COUNTS = ("runs", *_RARE)
_TIMES = ("total", "share", "median", "p90", "longest")
_NUMERIC = frozenset((*_COUNTS, *_TIMES, "in", "out", "tasks", "busy", "start", "time", "attempt"))


def _by_task(tasks: Sequence[LoggedTask]) -> Markup:
    found = times_by_task(tasks)
    whole = sum(each.total for each in found)
    rows = [
        (
            each.task,
            *(str(n) for n in (len(each.seconds), each.failed, each.repeated, each.cached)),
            seconds_of(each.total),
            share(each.total / whole) if whole else "",
            *(seconds_of(each.quantile(part)) for part in (0.5, 0.9, 1.0)),
            bytes_of(each.bytes_in),
            bytes_of(each.bytes_out),
        )
        for each in found
    ]
    names = ("task", *_COUNTS, *_TIMES, "in", "out")
    shown = [i for i, n in enumerate(names) if n not in _RARE or any(row[i] != "0" for row in rows)]
    caption = "All runs of each task; found: results that were kept, and so did not run"
    return _table(
        caption, [names[i] for i in shown], [[row[i] for i in shown] for row in rows], "by-task"
    )


def _by_worker(timeline: Timeline) -> Markup:
    rows = [_worker(lane, timeline.seconds) for lane in timeline.lanes]
    names = ("worker", "tasks", "busy", "share", "longest", "start")
    caption = (
        "For how long each worker ran tasks; the longest that it waited for one, and since when"
    )
    return _table(caption, names, rows, "by-worker")


def _worker(lane: WorkerLane, seconds: float) -> tuple[str, ...]:
    idle = lane.longest_idle
    count = sum(map(len, lane.rows))
    busy = share(lane.busy / seconds)
    waited = seconds_of(idle.seconds), seconds_of(idle.start)
    return lane.worker, str(count), seconds_of(lane.busy), busy, *waited


def _longest(log: SliceLog) -> Markup:
    """What the picture shows, in numbers: as many of its tasks as a person reads."""
    tasks = sorted(log.tasks, key=lambda each: each.seconds, reverse=True)[:_LONGEST]
    first = log.tasks[0].start
    rows = [
        (
            each.task,
            brief(each.worker),
            seconds_of(each.start - first),
            seconds_of(each.seconds),
            bytes_of(each.bytes_in),
            bytes_of(each.bytes_out),
            str(each.attempt),
        )
        for each in tasks
    ]
    names = ("task", "worker", "start", "time", "in", "out", "attempt")
    many = counted(len(rows), "longest task") if len(rows) < len(log.tasks) else "All tasks"
    table = _table(f"{many}; start: from that of the first task on", names, rows, "longest")
    return tag("details", tag("summary", f"The numbers: {many.lower()}"), table)


def _failures(failed: Sequence[LoggedTask], first: float) -> Markup:
    rows = [
        (
            each.task,
            brief(each.worker),
            seconds_of(each.start - first),
            seconds_of(each.seconds),
            str(each.attempt),
            each.error[:_MAX_ERROR],
        )
        for each in failed
    ]
    names = ("task", "worker", "start", "time", "attempt", "why")
    return _table("Tasks that failed, in their order", names, rows, "failures")
