"""`flowos show LOG`: the tasks that a slice's log says, and their timeline as a Chrome trace."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowos.model import UsageError, from_plain
from flowos.operations._files import write_together


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTask:
    """One task that ran: a line of the log. See `engine/flow/_task_log.py`."""

    task: str
    worker: str
    start: float
    end: float
    bytes_in: int
    bytes_out: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTimes:
    """All runs of the tasks of one name. seconds: of all together."""

    task: str
    runs: int
    failed: int
    seconds: float
    longest_seconds: float
    bytes_in: int
    bytes_out: int


def read_log(path: Path) -> tuple[LoggedTask, ...]:
    """In the order in which they started; an unfinished last line is left out.

    Raises UsageError for a file that is no such log, with the line.
    """
    found: list[LoggedTask] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            logged = from_plain(LoggedTask, json.loads(line))
            if not math.isfinite(logged.end - logged.start):
                raise ValueError("a time that is no number")
            found.append(logged)
        except ValueError as error:
            raise UsageError(f"{path}:{number} is no line of a slice's log: {error}") from None
    return tuple(sorted(found, key=lambda each: each.start))


def times_by_task(log: Sequence[LoggedTask]) -> tuple[LoggedTimes, ...]:
    """The longest together first."""
    names: dict[str, list[LoggedTask]] = {}
    for each in log:
        names.setdefault(each.task, []).append(each)
    times = [
        LoggedTimes(
            task=name,
            runs=len(some),
            failed=sum(bool(each.error) for each in some),
            seconds=sum(each.end - each.start for each in some),
            longest_seconds=max(each.end - each.start for each in some),
            bytes_in=sum(each.bytes_in for each in some),
            bytes_out=sum(each.bytes_out for each in some),
        )
        for name, some in names.items()
    ]
    return tuple(sorted(times, key=lambda each: each.seconds, reverse=True))


def write_trace(log: Sequence[LoggedTask], file: Path) -> None:
    """Write a Chrome trace (chrome://tracing, ui.perfetto.dev). Raises UsageError if that fails."""
    try:
        write_together(file.parent, {file.name: json.dumps(chrome_trace(log))})
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error


def chrome_trace(log: Sequence[LoggedTask]) -> dict[str, Any]:
    """A process for each node, a thread for each of its workers; times in microseconds."""
    workers = sorted({each.worker for each in log})
    nodes = sorted({_node(worker) for worker in workers})
    first = min((each.start for each in log), default=0.0)
    events: list[dict[str, Any]] = []
    for worker in workers:
        place = {"ph": "M", "pid": nodes.index(_node(worker)), "tid": workers.index(worker)}
        events.append({**place, "name": "process_name", "args": {"name": _node(worker)}})
        events.append({**place, "name": "thread_name", "args": {"name": worker}})
    for each in log:
        about = {"bytes_in": each.bytes_in, "bytes_out": each.bytes_out, "error": each.error}
        events.append(
            {
                "ph": "X",
                "name": each.task,
                "pid": nodes.index(_node(each.worker)),
                "tid": workers.index(each.worker),
                "ts": round((each.start - first) * 1e6, 3),
                "dur": round((each.end - each.start) * 1e6, 3),
                "args": {name: value for name, value in about.items() if value},
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _node(worker: str) -> str:
    return worker.rpartition(":")[0]
