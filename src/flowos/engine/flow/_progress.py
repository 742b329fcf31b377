"""How far the runs of a slice are: counted by lanes and by the slice, said ten times a second.

What runs from when there is something to wait for until there is not is one stretch: of one run
its tasks are counted, else its runs, or items of a `map`. A thread says how far it is and ends a
second after it; a slice that was not asked for progress has none of this.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from flowos.engine._clock import now
from flowos.engine.flow._lanes import Lane, PythonLane, RowTimes, Values
from flowos.model import Cancelled, DeviceNumbers, Progress
from flowos.plan import Stage

_INTERVAL_SECONDS = 0.1
_IDLE_TICKS = 10
_LOOKS_BACK_SECONDS = 10.0
_LOOKS_BACK_COUNT = 5


class ProgressSink(Protocol):
    """Where progress is shown. delay_seconds: of what is over sooner, nothing is."""

    delay_seconds: float

    def begin(self) -> None:
        """Something runs."""
        ...

    def show(self, progress: Progress) -> None: ...

    def end(self, progress: Progress | None) -> None:
        """It is over, this far; None if nothing was shown."""
        ...


T = TypeVar("T")
Running = tuple[float, Sequence[Stage], int]
"""Since when a lane runs these stages, and for which thread."""


class LaneCount:
    """What one lane counts; one thread at a time does.

    at: of the lane, see `SteppingLane`. state: how many tasks are done, and what runs; one value,
    so that another thread reads what belongs together.
    """

    def __init__(self, at: Callable[[int], tuple[int, int] | None]) -> None:
        self._at = at
        self.state: tuple[int, Running | None] = (0, None)
        self.failed = 0
        self._seen: tuple[Running, int, int] | None = None
        self._since = 0.0

    def look(self, time: float) -> tuple[int, tuple[float, str] | None]:
        """Tasks that are done, and since when which one runs; None where that is not known."""
        done, running = self.state
        if running is None:
            return done, None
        since, stages, thread = running
        at = self._at(thread)
        if at is None:
            alone = len(stages) == 1 and len(stages[0].steps) == 1
            return done, (since, stages[0].label) if alone else None
        place, step = at
        place = min(place, len(stages) - 1)
        steps = stages[place].steps
        step = min(stages[place].outer_step(step), len(steps) - 1)
        if (running, place, step) != self._seen:
            self._seen = running, place, step
            self._since = time if place or step else since
        done += sum(len(stage.steps) for stage in stages[:place]) + step
        return done, (self._since, steps[step].label)


def at_first(_: int) -> tuple[int, int]:
    """Of a lane whose stages have one step, and come one by one."""
    return 0, 0


class MapCount:
    """Items of a `map` that are over; total: None if it is not known."""

    __slots__ = ("done", "total")

    def __init__(self, total: int | None) -> None:
        self.done, self.total = 0, total


class ProgressWatch:
    """Of the slices that one `fo.slice` opens. notes: why it shows no more, if it does not."""

    def __init__(self, sink: ProgressSink, clock: Callable[[], float] = now) -> None:
        self._sink: ProgressSink | None = sink
        self._clock = clock
        self._lock = threading.RLock()
        self._showing = threading.RLock()
        self._lanes: list[LaneCount] = []
        self._thread: threading.Thread | None = None
        self.notes: tuple[str, ...] = ()
        self._open = 0
        self._shown = False
        self._new_stretch("")

    def lane(self, at: Callable[[int], tuple[int, int] | None]) -> LaneCount:
        """For another lane."""
        count = LaneCount(at)
        with self._lock:
            self._lanes.append(count)
        return count

    def begin(self, flow: str, tasks: int) -> None:
        """A run of so many tasks begins; 0: it is not known, as of a loop."""
        with self._lock:
            self._begin(flow)
            self._runs += 1
            self._tasks = tasks

    def end(self) -> None:
        """A run is over, in whichever way."""
        with self._lock:
            self._runs_done += 1
            self._open -= 1
        self._end_stretch()

    def begin_map(self, flow: str, total: int | None) -> MapCount:
        """A map begins. Its caller counts the items that are over."""
        with self._lock:
            self._begin(flow)
            self._maps.append(MapCount(total))
            self._mapped = True
            return self._maps[-1]

    def end_map(self, items: MapCount) -> None:
        """It is over, perhaps before its last item."""
        with self._lock:
            self._maps.remove(items)
            self._runs += items.done
            self._runs_done += items.done
            self._open -= 1
        self._end_stretch()

    def _begin(self, flow: str) -> None:
        if not self._open:
            self._new_stretch(flow)
            if self._sink is not None:
                self._sink.begin()
        self._open += 1
        if self._thread is None and self._sink is not None:
            thread = threading.Thread(target=self._tick, name="flowos-progress", daemon=True)
            with suppress(RuntimeError):  # without a thread, nothing is shown
                thread.start()
                self._thread = thread

    def _new_stretch(self, flow: str) -> None:
        self._flow, self._began = flow, self._clock()
        self._runs: int = 0
        self._runs_done = self._tasks = 0
        self._maps: list[MapCount] = []
        self._mapped = False
        self._unit = ""
        self._lanes_done = sum(lane.state[0] for lane in self._lanes)
        self._lanes_failed = sum(lane.failed for lane in self._lanes)

    def _tick(self) -> None:
        idle = 0
        while True:
            time.sleep(_INTERVAL_SECONDS)
            runs = any(lane.state[1] for lane in self._lanes)
            with self._lock:
                idle = 0 if runs else idle + 1
                if not threading.main_thread().is_alive() or (
                    idle > _IDLE_TICKS and not self._open
                ):
                    self._thread = None
                    return
            if idle > _IDLE_TICKS:  # whatever waits for results has the terminal for itself
                self._hide()
            else:
                self._show()

    def _show(self) -> None:
        with self._showing:  # in turns, and each looks whether it is still so
            with self._lock:
                sink = self._sink
                age = self._clock() - self._began
                if sink is None or not self._open or age < sink.delay_seconds:
                    return
                self._shown, progress = True, self._progress()
            self._call(sink.show, progress)

    def _end_stretch(self) -> None:
        with self._lock:
            if self._open or self._sink is None:
                return
            if not self._shown:
                self._sink.end(None)
                return
        self._hide(still=False)

    def _hide(self, *, still: bool = True) -> None:
        with self._showing:
            with self._lock:
                sink = self._sink
                if sink is None or not self._shown or bool(self._open) != still:
                    return
                self._shown, progress = False, self._progress()
            self._call(sink.end, progress)

    def _call(self, show: Callable[[Progress], None], progress: Progress) -> None:
        try:
            show(progress)
        except Exception as error:
            self._sink = None
            why = f"{type(error).__name__}: {error}"
            self.notes = (f"progress is shown no more, as showing it raised {why}",)

    def _progress(self) -> Progress:
        time = self._clock()
        lanes = [lane.look(time) for lane in self._lanes]
        done, total, unit = self._counts(sum(each for each, _ in lanes) - self._lanes_done)
        if unit != self._unit:
            self._unit, self._seen = unit, deque([(self._began, 0)])
        seen = self._seen
        if done != seen[-1][1]:
            seen.append((time, done))
        while (
            len(seen) > 2
            and time - seen[1][0] > _LOOKS_BACK_SECONDS
            and seen[-1][1] - seen[1][1] >= _LOOKS_BACK_COUNT
        ):
            seen.popleft()
        rate = (done - seen[0][1]) / max(time - seen[0][0], 1e-9)
        failed = sum(lane.failed for lane in self._lanes) - self._lanes_failed
        words = (
            f"{done}/{total} {unit}s" if total else f"{done} {unit}s",
            _rate(rate) if rate else "",
            _longest([running for _, running in lanes], time),
            f"{failed} failed" if failed else "",
        )
        return Progress(
            doing=self._flow,
            done=done,
            total=total,
            unit=unit,
            detail="  ".join(filter(None, words)),
            left_seconds=(total - done) / rate if rate and done < total else None,
        )

    def _counts(self, tasks: int) -> tuple[int, int, str]:
        """done, total, unit; tasks: how many are done."""
        if self._runs == 1 and not self._mapped:
            return min(tasks, self._tasks or tasks), self._tasks, "task"
        done = self._runs_done + sum(each.done for each in self._maps)
        totals = [each.total for each in self._maps]
        known = self._runs + sum(total or 0 for total in totals)
        return done, 0 if None in totals else max(done, known), "item" if self._mapped else "run"


class WatchedLane:
    """A lane around another, which counts what it does."""

    def __init__(self, inner: Lane, count: LaneCount) -> None:
        self._inner = inner
        self._count = count

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        tasks = sum(len(stage.steps) for stage in stages)
        return self._counted(stages, tasks, lambda: self._inner.run(stages, values))

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        self._inner.bind(cores, devices)

    def stop(self) -> None:
        self._inner.stop()

    def _counted(self, stages: Sequence[Stage], tasks: int, run: Callable[[], T]) -> T:
        count = self._count
        done, outer = count.state
        count.state = done, (now(), stages, threading.get_ident())
        try:
            return run()
        except BaseException as error:
            tasks = 0
            count.failed += not isinstance(error, Cancelled)
            raise
        finally:
            count.state = count.state[0] + tasks, outer


class WatchedPythonLane(WatchedLane):
    """The same for a lane of Python tasks."""

    def __init__(self, inner: PythonLane, count: LaneCount) -> None:
        super().__init__(inner, count)
        self._python = inner

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        """What is done of these, the caller of the `map` counts."""
        return self._counted((stage,), 0, lambda: self._python.run_rows(stage, rows, results))


def _rate(per_second: float) -> str:
    for name, seconds in (("s", 1), ("min", 60)):
        if (rate := per_second * seconds) >= 1:
            return f"{rate:,.0f}/{name}" if rate >= 100 else f"{rate:.3g}/{name}"
    return f"{per_second * 3600:.3g}/h"


def _longest(running: Sequence[tuple[float, str] | None], time: float) -> str:
    """The task that has been running for longest."""
    since, label = min(filter(None, running), default=(0.0, ""))
    seconds = int(time - since)
    return f"{label} for {seconds} s" if label and seconds else label
