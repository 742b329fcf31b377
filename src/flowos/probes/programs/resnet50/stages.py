"""Where the time of an iteration goes: load, copy, forward, backward, allreduce, optimizer, other.

On processors it is the time of the training thread. On a GPU it is the time of the stream that
computes, between CUDA events, so that nothing waits for anything: `load` and `copy` are then what
the GPU had to wait for, not what was hidden behind its work on the iteration before.
"""

import json
import time
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import torch

STAGES = ("load", "copy", "forward", "backward", "allreduce", "optimizer", "other")
LAST = STAGES[-1]
PENDING = 32
"""Iterations after which events are read: the GPU has passed them, so that reading waits for none.
"""


class StageClock(Protocol):
    def now(self) -> Any: ...
    def seconds(self, start: Any, end: Any) -> float: ...
    def since_1970(self, at: Any) -> float: ...


class HostClock:
    """Of `time.perf_counter`."""

    def __init__(self) -> None:
        self._offset = time.time() - time.perf_counter()

    def now(self) -> float:
        return time.perf_counter()

    def seconds(self, start: float, end: float) -> float:
        return end - start

    def since_1970(self, at: float) -> float:
        return at + self._offset


class DeviceClock:
    """CUDA events in the stream that is current where `now` is called."""

    def __init__(self) -> None:
        torch.cuda.synchronize()
        self._begin, self._began = self.now(), time.time()

    def now(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, start: Any, end: Any) -> float:
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def since_1970(self, at: Any) -> float:
        return self._began + self.seconds(self._begin, at)


def clock_of(device: Any) -> StageClock:
    return DeviceClock() if device.type == "cuda" else HostClock()


class StageTimes:
    """Seconds of each stage, summed over an epoch, its first two iterations apart.

    clock: None takes no times. traced: iterations of which spans are kept for a trace.
    """

    def __init__(self, clock: StageClock | None, traced: int = 0) -> None:
        self._clock, self._traced = clock, traced
        self._marks: list[tuple[str, Any]] = []
        self._pending: deque[list[tuple[str, Any]]] = deque()
        self.spans: list[tuple[str, float, float]] = []
        """Stage, when it began (seconds since 1970), and for how long."""
        self.restart([])

    def restart(self, rows: list[dict[str, float]]) -> None:
        """An epoch begins, or goes on with what `rows` said of it."""
        self._rows = [dict(row) for row in rows] or [dict.fromkeys(STAGES, 0.0)]
        if self._clock is not None:
            self._marks = [("", self._clock.now())]

    def mark(self, stage: str) -> None:
        """The stage ends now; the last of them ends the iteration."""
        if self._clock is None:
            return
        now = self._clock.now()
        self._marks.append((stage, now))
        if stage == LAST:
            self._pending.append(self._marks)
            self._marks = [("", now)]
            if len(self._pending) > PENDING:
                self._take(self._pending.popleft())

    def rows(self) -> list[dict[str, float]]:
        """Seconds by stage: the sum so far, the first iteration, the second. Waits for the GPU."""
        while self._pending:
            self._take(self._pending.popleft())
        return self._rows if self._clock is not None else []

    def _take(self, marks: list[tuple[str, Any]]) -> None:
        assert self._clock is not None
        row = dict.fromkeys(STAGES, 0.0)
        kept = self._traced > 0
        self._traced -= kept
        for (_, start), (stage, end) in pairwise(marks):
            seconds = self._clock.seconds(start, end)
            row[stage] += seconds
            self._rows[0][stage] += seconds
            if kept:
                self.spans.append((stage, self._clock.since_1970(start), seconds))
        if len(self._rows) < 3:
            self._rows.append(row)


def write_trace(file: Path, of_ranks: list[list[tuple[str, float, float]]]) -> None:
    """For chrome://tracing and ui.perfetto.dev: a line for each rank, times in microseconds."""
    began = min((start for spans in of_ranks for _, start, _ in spans), default=0.0)
    events = [
        {
            "name": stage,
            "ph": "X",
            "pid": rank,
            "tid": 0,
            "ts": round((start - began) * 1e6, 3),
            "dur": round(seconds * 1e6, 3),
        }
        for rank, spans in enumerate(of_ranks)
        for stage, start, seconds in spans
    ]
    names = [
        {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
        for rank in range(len(of_ranks))
    ]
    file.write_text(json.dumps({"traceEvents": names + events}))
