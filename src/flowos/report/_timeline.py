"""Arranges the tasks of a log: times by task, workers as rows over time, idle time; no drawing.

Time is that of the page: seconds from the first start, without long pauses in which nothing ran. A
row holds tasks that do not overlap; a worker has several if its tasks run slices themselves.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from flowos._dataclasses import dataclass, replace
from flowos.model import LoggedTask

Span = tuple[float, float]

_MIN_SECONDS = 1e-6
_MIN_PAUSE_SECONDS = 60.0
_OVERLAP_SECONDS = 1e-3
"""Clocks are adjusted: tasks that overlap less follow one another."""
_MAX_ROWS_OF_A_WORKER = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimes:
    """All tasks of one name. seconds: each of those that ran, ascending. repeated: how many were
    not at their first attempt."""

    task: str
    seconds: tuple[float, ...]
    failed: int
    repeated: int
    cached: int
    bytes_in: int
    bytes_out: int

    @property
    def total(self) -> float:
        return sum(self.seconds)

    def quantile(self, share: float) -> float:
        """The least time that so large a share of them does not exceed; 0 if none ran."""
        rank = math.ceil(share * len(self.seconds))
        return self.seconds[rank - 1] if rank else 0.0


def times_by_task(tasks: Iterable[LoggedTask]) -> tuple[TaskTimes, ...]:
    """The longest together first."""
    names: dict[str, list[LoggedTask]] = {}
    for each in tasks:
        names.setdefault(each.task, []).append(each)
    times = (_times(name, some) for name, some in names.items())
    return tuple(sorted(times, key=lambda each: each.total, reverse=True))


def _times(name: str, some: Sequence[LoggedTask]) -> TaskTimes:
    return TaskTimes(
        task=name,
        seconds=tuple(sorted(each.seconds for each in some if not each.cached)),
        failed=sum(bool(each.error) for each in some),
        repeated=sum(each.attempt > 1 for each in some),
        cached=sum(each.cached for each in some),
        bytes_in=sum(each.bytes_in for each in some),
        bytes_out=sum(each.bytes_out for each in some),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTask:
    """A task at its time of the page."""

    start: float
    end: float
    logged: LoggedTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A worker ran nothing. meanwhile: the task of another one that ran for most of that time."""

    worker: str
    start: float
    end: float
    meanwhile: PlacedTask | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLane:
    """A worker's tasks in rows. busy: seconds in which it ran at least one."""

    worker: str
    rows: tuple[tuple[PlacedTask, ...], ...]
    busy: float
    longest_idle: Idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """starts: real time of the page's time 0 and of the end of each pause: (time, on the page).

    paused: seconds left out. nothing_ran: seconds on the page in which no worker ran a task.
    idle: the longest of a worker.
    """

    lanes: tuple[WorkerLane, ...]
    seconds: float
    starts: tuple[Span, ...]
    paused: float
    nothing_ran: float
    idle: Idle

    @property
    def busy_share(self) -> float:
        return sum(lane.busy for lane in self.lanes) / (self.seconds * len(self.lanes))


def timeline_of(tasks: Sequence[LoggedTask]) -> Timeline:
    """tasks: at least one, in the order of their starts."""
    worked = _union((each.start, each.end) for each in tasks)
    starts = _starts(worked)
    times = [time for time, _ in starts]
    placed: dict[str, list[PlacedTask]] = {}
    for each in tasks:
        time, begin = starts[bisect_right(times, each.start) - 1]
        start = each.start - time + begin
        found = PlacedTask(start=start, end=start + each.seconds, logged=each)
        placed.setdefault(each.worker, []).append(found)
    seconds = max(worked[-1][1] - starts[-1][0] + starts[-1][1], _MIN_SECONDS)
    lanes = tuple(_lane(name, placed[name], seconds) for name in sorted(placed, key=_in_order))
    idle = max((lane.longest_idle for lane in lanes), key=lambda each: each.seconds)
    return Timeline(
        lanes=lanes,
        seconds=seconds,
        starts=starts,
        paused=max(0.0, worked[-1][1] - worked[0][0] - seconds),
        nothing_ran=max(0.0, seconds - _length(worked)),
        idle=_with_meanwhile(idle, placed),
    )


def chrome_trace(tasks: Sequence[LoggedTask]) -> dict[str, Any]:
    """A process for each node, a thread for each of its workers; times in microseconds."""
    workers = {name: i for i, name in enumerate(sorted({t.worker for t in tasks}, key=_in_order))}
    nodes = {name: i for i, name in enumerate(dict.fromkeys(map(_node, workers)))}
    first = min((each.start for each in tasks), default=0.0)
    events: list[dict[str, Any]] = []
    for worker, number in workers.items():
        place = {"ph": "M", "pid": nodes[_node(worker)], "tid": number}
        events.append({**place, "name": "process_name", "args": {"name": _node(worker)}})
        events.append({**place, "name": "thread_name", "args": {"name": worker}})
    for each in tasks:
        about = {
            "bytes_in": each.bytes_in,
            "bytes_out": each.bytes_out,
            "error": each.error,
            "attempt": each.attempt if each.attempt > 1 else 0,
            "cached": each.cached,
            "rounds": each.rounds,
        }
        events.append(
            {
                "ph": "X",
                "name": each.task,
                "pid": nodes[_node(each.worker)],
                "tid": workers[each.worker],
                "ts": round((each.start - first) * 1e6, 3),
                "dur": round(each.seconds * 1e6, 3),
                "args": {name: value for name, value in about.items() if value},
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _node(worker: str) -> str:
    return worker.rpartition(":")[0]


def _in_order(worker: str) -> tuple[str, int, str]:
    """By node, then by the number of the place."""
    place = worker.rpartition(":")[2]
    number = int(place) if place.isascii() and place.isdecimal() and len(place) < 10 else 0
    return _node(worker), number, worker


def _union(spans: Iterable[Span]) -> list[Span]:
    """In order and apart. spans: by their starts."""
    found: list[Span] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _length(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)


def _starts(worked: Sequence[Span]) -> tuple[Span, ...]:
    """A pause is left out if it is longer than all work together, and than a minute."""
    least = max(_MIN_PAUSE_SECONDS, _length(worked))
    ends = [(0.0, worked[0][0])]
    ends += [(a[1], b[0]) for a, b in pairwise(worked) if b[0] - a[1] > least]
    lengths = [last - start for (_, start), (last, _) in pairwise(ends)]
    begins = accumulate(lengths, initial=0.0)
    return tuple((start, begin) for (_, start), begin in zip(ends, begins, strict=True))


def _lane(worker: str, placed: Sequence[PlacedTask], seconds: float) -> WorkerLane:
    worked = _union((each.start, each.end) for each in placed)
    ends = (0.0, *(edge for span in worked for edge in span), max(seconds, worked[-1][1]))
    gaps = [Idle(worker=worker, start=a, end=b) for a, b in zip(ends[::2], ends[1::2], strict=True)]
    return WorkerLane(
        worker=worker,
        rows=_rows(placed),
        busy=_length(worked),
        longest_idle=max(gaps, key=lambda each: each.seconds),
    )


def _rows(placed: Sequence[PlacedTask]) -> tuple[tuple[PlacedTask, ...], ...]:
    rows: list[list[PlacedTask]] = [[]]
    for each in placed:
        free = (r for r in rows if not r or each.start > r[-1].end - _OVERLAP_SECONDS)
        row = next(free, None)
        if row is None:
            row = [] if len(rows) < _MAX_ROWS_OF_A_WORKER else rows.pop()
            rows.append(row)
        row.append(each)
    return tuple(map(tuple, rows))


def _with_meanwhile(idle: Idle, placed: dict[str, list[PlacedTask]]) -> Idle:
    def common(each: PlacedTask) -> float:
        return min(each.end, idle.end) - max(each.start, idle.start)

    others = (each for name, some in placed.items() if name != idle.worker for each in some)
    most = max(others, key=common, default=None)
    if most is None or common(most) <= idle.seconds / 2:
        return idle
    return replace(idle, meanwhile=most)
