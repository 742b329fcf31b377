"""Lanes that run stages in the threads that call them."""

from collections.abc import Sequence
from time import perf_counter, thread_time

from flowos._dataclasses import replace
from flowos.engine.flow._kernel import CompiledStage, MarkedOperations, StopFlag
from flowos.engine.flow._lanes import BATCH_SECONDS, RowTimes
from flowos.model import DeviceNumbers
from flowos.plan import Schedule, Stage


class ThreadLane:
    """A thread cannot be ended from outside: a stop is heard, by `stop_flag`, between two tasks."""

    __slots__ = ("_marks", "_programs", "_stop_flag")

    def __init__(
        self, stop_flag: StopFlag, programs: Sequence[CompiledStage], marks: dict[int, int]
    ) -> None:
        self._stop_flag = stop_flag
        self._programs = programs
        self._marks = marks

    def run(
        self, stages: Sequence[Stage], values: Sequence[Sequence[object]]
    ) -> Sequence[Sequence[object]]:
        """One stage, as `ThreadLanes.max_batch` says."""
        return (self._programs[stages[0].number].run(values[0], self._stop_flag),)

    def run_rows(
        self,
        stage: Stage,
        rows: Sequence[Sequence[object]],
        results: list[Sequence[object] | None],
    ) -> RowTimes:
        run, stop_flag = self._programs[stage.number].run, self._stop_flag
        worked, began = thread_time(), perf_counter()
        until, now = began + BATCH_SECONDS, began
        for row in rows:
            before = now
            results.append(run(row, stop_flag))
            if (now := perf_counter()) > until:
                break
        return RowTimes(now - began, now - before, thread_time() - worked)

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        """Threads stay where they are: the pools of their libraries are of the whole process.

        They share its variables too: no task that needs devices runs in one.
        """

    def stop(self) -> None:
        """Nothing beyond `stop_flag`."""

    def at(self, thread: int) -> tuple[int, int]:
        return 0, self._marks.get(thread, 0)


class ThreadLanes:
    """One place for Python tasks of this process per `StopFlag`."""

    max_batch = 1
    ready = 0

    def __init__(self, schedule: Schedule, stop_flags: Sequence[StopFlag]) -> None:
        self._programs = [CompiledStage(stage) for stage in schedule.all_stages]
        self._marks: dict[int, int] = {}
        self.lanes = tuple(
            ThreadLane(stop_flag, self._programs, self._marks) for stop_flag in stop_flags
        )

    def added(self, stage: Stage) -> Stage:
        """The same, which lanes can be given from now on too."""
        stage = replace(stage, number=len(self._programs))
        self._programs.append(CompiledStage(stage))
        return stage

    def mark_steps(self) -> None:
        """From now on lanes know at which step of a stage they are."""
        for program in self._programs:
            program.operations = MarkedOperations(program.operations, self._marks)

    def close(self) -> None:
        """Nothing to leave behind: the threads belong to the executor."""
