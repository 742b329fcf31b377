"""A log of the tasks of a slice: a line of JSON for each, a `LoggedTask`, written as it ends.

    {"task": "mesh#2", "worker": "vm:1", "start": 1795419300.25, "end": 1795419301.5,
     "bytes_in": 800, "bytes_out": 1600}

A task that failed has "error": its first line, and no bytes_out. From the second one on it has
"attempt". One whose result was found is "cached", with no time between start and end.
A task in a loop has "rounds": [3], with one number for each loop around it, the outer one first.
"""

import json
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from flowos.engine.flow._lanes import BATCH_SECONDS, Lane, PythonLane, RowTimes, Values
from flowos.engine.flow._runs import ExecutionSlot
from flowos.model import DeviceNumbers, SliceRefused
from flowos.plan import Stage


class TaskLog:
    """An open log, to append to; thread-safe. Raises SliceRefused if it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: tuple[str, ...] = ()
        self._lock = threading.Lock()
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SliceRefused(f"log {path}: it cannot be opened: {error.strerror}") from error

    def write(self, entry: dict[str, object]) -> None:
        """Append a line. After an error no more, which the notes say: no run fails for it."""
        line = f"{json.dumps(entry)}\n".encode()
        with self._lock:
            if self.notes or self._fd < 0:
                return
            try:
                os.write(self._fd, line)
            except OSError as error:
                self.notes = (f"log {self.path}: it ends early: {error.strerror}",)

    def found(self, worker: str, stage: Stage, values: Values, results: Values) -> None:
        """Append a line of a task that did not run."""
        entry = _begun(stage, worker, time.time(), values)
        self.write({**entry, "bytes_out": _bytes_of(results), "cached": True})

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


class LoggedLane:
    """A lane around another, which runs one stage after the other and takes its time.

    slot: of this lane; it knows the attempt and the rounds.
    """

    def __init__(self, inner: Lane, log: TaskLog, worker: str, slot: ExecutionSlot) -> None:
        self._inner = inner
        self._log = log
        self._worker = worker
        self._slot = slot

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        return [self._timed(stage, row) for stage, row in zip(stages, values, strict=True)]

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        self._inner.bind(cores, devices)

    def stop(self) -> None:
        self._inner.stop()

    def _timed(self, stage: Stage, row: Values) -> Values:
        start, began = time.time(), time.perf_counter()
        entry = _begun(stage, self._worker, start, row)
        run = self._slot.run
        if run is not None and (attempt := run.attempt(stage)) > 1:
            entry["attempt"] = attempt
        if run is not None and run.rounds:
            entry["rounds"] = run.rounds
        try:
            (results,) = self._inner.run((stage,), (row,))
            entry["bytes_out"] = _bytes_of(results)
        except BaseException as error:
            entry["error"] = (str(error) or type(error).__name__).splitlines()[0]
            raise
        finally:
            entry["end"] = start + time.perf_counter() - began
            self._log.write(entry)
        return results


class LoggedPythonLane(LoggedLane):
    """The same for a lane of Python tasks."""

    def __init__(self, inner: PythonLane, log: TaskLog, worker: str, slot: ExecutionSlot) -> None:
        super().__init__(inner, log, worker, slot)

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        worked, began = time.thread_time(), time.perf_counter()
        before = now = began
        for row in rows:
            before = now
            results.append(self._timed(stage, row))
            if (now := time.perf_counter()) > began + BATCH_SECONDS:
                break
        return RowTimes(now - began, now - before, time.thread_time() - worked)


def _begun(stage: Stage, worker: str, at: float, values: Values) -> dict[str, object]:
    """The line of a task that ends when it starts."""
    bytes_in = _bytes_of(values)
    return {"task": stage.label, "worker": worker, "start": at, "end": at, "bytes_in": bytes_in}


def _bytes_of(values: Values) -> int:
    return sum(map(_size, values))


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, Path):
        with suppress(OSError):
            return value.stat().st_size
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0
