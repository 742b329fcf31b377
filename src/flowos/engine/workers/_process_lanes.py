"""Lanes that run stages in worker processes of this node.

A lane starts its worker when it first needs one, and another after it lost one. A worker is lost
when its socket ends: the run fails with WorkerLost, naming the step that the worker began last.
Values that only workers read stay packed: their memory goes from worker to worker by descriptor,
and this process neither copies nor maps it. What a task prints comes out here before its run ends.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from flowos._collected import when_collected
from flowos.engine.flow._bound import device_variables, max_cores
from flowos.engine.flow._failures import remedy_of
from flowos.engine.flow._inside import Surroundings
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.flow._lanes import BATCH_SECONDS, RowTimes, Values
from flowos.engine.launch._end_reasons import step_words
from flowos.engine.launch._running import RunningProcess
from flowos.engine.workers._blobs import Packed, Unpackable
from flowos.engine.workers._lanes_state import LanesState
from flowos.engine.workers._worker_failures import (
    input_unsendable,
    lost,
    output_unreadable,
    over_limit,
)
from flowos.engine.workers._worker_process import Times, WorkerProcess
from flowos.engine.workers._worker_start import KILL_SECONDS, Start, how_gone, start_worker
from flowos.model import (
    Cancelled,
    DeviceNumbers,
    FlowosError,
    LaunchFailed,
    Pairs,
    SliceFreed,
    TaskFailed,
    ValueRefused,
    WorkerLost,
)
from flowos.plan import Schedule, Stage

_MAX_STAGES = 256
_END_SECONDS = 5.0
_END_SECONDS = 1.0
_KILLED_SECONDS = 10.0
_STOPPED = "the worker process was stopped"
_NO_LIMIT = -1.0


class ProcessLanes:
    """`count` lanes, each a process. Nothing is started before a stage is run."""

    max_batch = _MAX_STAGES

    def __init__(
        self,
        schedule: Schedule,
        count: int,
        *,
        around: Surroundings,
        stop_flags: Sequence[StopFlag] = (),
        python: str = sys.executable,
    ) -> None:
        start = Start(count=count, python=python, around=around, threads=max_cores(schedule))
        state = LanesState(schedule, start)
        self.lanes = tuple(
            ProcessLane(state, stop_flag)
            for stop_flag in stop_flags or [StopFlag() for _ in range(count)]
        )
        self._end = partial(_close, state, self.lanes)
        self._ending = when_collected(self, self._end)

    @property
    def ready(self) -> int:
        """See `Lanes`."""
        return sum(lane.is_ready for lane in self.lanes)

    def close(self) -> None:
        """End all workers, wait for their end. Twice is once."""
        if self._ending.detach():
            self._end()


class ProcessLane:
    """One worker process at a time. See `_lanes` for what `run` and `stop` promise.

    stop_flag: while it is on nothing is run, for a `stop` may come before its run is here.
    """

    def __init__(self, state: LanesState, stop_flag: StopFlag) -> None:
        self._state = state
        self._stop_flag = stop_flag
        self._busy = threading.Lock()
        """Held by a run; the rest changes under `_lock`."""
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._bound: tuple[tuple[int, ...], Pairs] = ((), ())
        self._gpus: tuple[int | str, ...] = ()
        self._stopped = False

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        results: list[Values | None] = []
        self._run(stages, values, results, None)
        return results  # type: ignore[return-value]  # nothing is lost of what is returned

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        return RowTimes(*self._run([stage] * len(rows), rows, results, BATCH_SECONDS))

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        self._bound = tuple(cores), device_variables({"": devices})
        had, self._gpus = self._gpus, dict(devices).get("gpu", self._gpus)
        if self._gpus != had:  # a process sees the GPUs that it used first, whatever is set later
            with self._lock:
                ours = had, self._worker, self._gpus
                self._worker, ended = self._state.spares.exchange(*ours)
                self._state.let_go(ended)

    def stop(self) -> None:
        with self._lock:
            if self._busy.locked():
                self._stopped = True
                if self._worker is not None:
                    self._worker.kill()

    def at(self, _: int) -> tuple[int, int] | None:
        return worker.at if (worker := self._worker) else (0, 0)

    @property
    def is_ready(self) -> bool:
        """Whether its worker runs and has nothing to do."""
        return self._worker is not None and not self._busy.locked()

    def end(self) -> RunningProcess | None:
        """For the close of all lanes: an idle worker leaves, a busy one is killed."""
        with self._lock:
            worker = self._worker
            if worker is not None:
                if self._busy.locked():
                    self._stopped = True
                    worker.kill()
                else:
                    worker.leave()
                    worker.forget()
                    self._worker = None
            return worker.running if worker else None

    def idle(self, seconds: float) -> bool:
        """Wait for the end of a run on another thread, whose descriptors must stay its own."""
        free = self._busy.acquire(timeout=seconds)
        if free:
            self._busy.release()
        return free

    def _begin(self) -> None:
        if os.getpid() != self._state.process:
            raise SliceFreed(f"this slice belongs to process {self._state.process}: make another")
        with self._lock:
            if self._stopped:  # a stop that came too late for its run
                self._drop()
            self._stopped = False
        if self._stop_flag.on:
            raise Cancelled(_STOPPED)
        if self._state.closed:
            raise SliceFreed("the slice was freed: make another with fo.slice(...)")

    def _run(
        self,
        stages: Sequence[Stage],
        values: Sequence[Values],
        results: list[Values | None],
        seconds: float | None,
    ) -> Times:
        with self._busy:
            self._begin()
            try:
                worker = self._worker or self._hire(stages)
                batch, unsendable = self._packed(stages, values)
                answers, failed, times = self._exchange(worker, stages, batch, results, seconds)
                for stage, answer in zip(stages, answers):  # noqa: B905 - fewer, where time was over
                    results.append(self._opened(stage, answer))
            finally:
                self._state.output.drain()
        if failed:
            place, *details = failed
            raise self._state.program.error(stages[place], *details)
        if unsendable is not None and len(results) == len(batch):
            raise unsendable
        return times

    def _exchange(
        self,
        worker: WorkerProcess,
        stages: Sequence[Stage],
        batch: Sequence[tuple[int, list[Any]]],
        results: list[Values | None],
        seconds: float | None,
        again: bool = True,
    ) -> tuple[list[list[Any]], Sequence[Any], Times]:
        """What the stages gave; (place, step, kind, ...) of the next one, if it failed; times."""
        limit = self._state.program.limits.get(stages[0].number)
        try:
            worker.bind(*self._bound)
            return worker.run(batch, seconds, limit and limit + (seconds or 0.0))
        except TimeoutError:
            self._drop()
            raise self._over_limit(worker, stages, batch, results) from None
        except (EOFError, ConnectionError):
            self._detach()
            if again and worker.place is None and not self._stopped:  # it died while it was idle
                return self._exchange(self._hire(stages), stages, batch, results, seconds, False)
            results += [None] * worker.stage
            raise self._lost(worker, stages) from None
        except OSError as error:
            self._drop()
            label = stages[0].steps[0].label
            raise TaskFailed(f"task {label!r}: no way to its worker process: {error}") from error
        except BaseException:
            self._drop()
            raise

    def _hire(self, stages: Sequence[Stage]) -> WorkerProcess:
        state = self._state
        try:
            running, channel = start_worker(state.start, lambda: self._stopped or state.closed)
        except LaunchFailed as error:
            raise _not_hired(state.start, stages, error) from error
        worker = WorkerProcess(running, channel, state.start)
        with self._lock:
            self._worker = worker
            if self._stopped or state.closed:
                worker.kill()
        try:
            worker.greet(state.output.writers, state.keep_bytes, state.max_files)
            worker.teach(state.program)
        except (EOFError, ConnectionError):
            self._detach()
            raise self._lost(worker, stages, " while it loaded the functions") from None
        except LaunchFailed as error:
            self._drop()
            raise _not_hired(state.start, stages, error) from error
        except BaseException:
            self._drop()
            raise
        return worker

    def _packed(
        self, stages: Sequence[Stage], values: Sequence[Values]
    ) -> tuple[list[tuple[int, list[Any]]], FlowosError | None]:
        """The stages as they are sent, up to the first whose inputs cannot cross, and why."""
        batch: list[tuple[int, list[Any]]] = []
        state = self._state
        for stage, row in zip(stages, values, strict=True):
            try:
                batch.append((stage.number, state.pack(stage, state.files.as_inside(stage, row))))
            except Unpackable as error:
                refused = input_unsendable(stage, *error.args)
                refused.__cause__ = error.__cause__
                return batch, refused
            except (TaskFailed, ValueRefused) as error:
                return batch, error
        return batch, None

    def _opened(self, stage: Stage, values: list[Any]) -> list[Any]:
        """Values that only workers read stay packed."""
        kept = self._state.program.kept[stage.number]
        for i, slot in enumerate(stage.outputs):
            value = values[i]
            if type(value) is Packed and slot not in kept:
                try:
                    values[i] = value.take()
                except Exception as error:
                    why = f"{type(error).__name__}: {error}"
                    raise output_unreadable(stage, slot, why) from error
        return self._state.files.as_outside(stage, values)

    def _drop(self) -> None:
        """End the worker; the next run starts another."""
        worker = self._detach()
        if worker is not None:
            worker.kill()

    def _detach(self) -> WorkerProcess | None:
        worker = self._worker
        if worker is not None:
            self._state.let_go([worker])
            self._worker = None
        return worker

    def _over_limit(
        self,
        worker: WorkerProcess,
        stages: Sequence[Stage],
        batch: Sequence[tuple[int, list[Any]]],
        results: list[Values | None],
    ) -> FlowosError:
        """Once the worker has ended: what is run again may not meet what still runs."""
        with contextlib.suppress(TimeoutError):
            worker.running.wait(_END_SECONDS)
        if self._stopped or self._state.closed:
            return Cancelled(_STOPPED)
        results += [None] * worker.stage
        return over_limit(stages[worker.stage].steps[0], batch[worker.stage][1])

    def _lost(self, worker: WorkerProcess, stages: Sequence[Stage], when: str = "") -> FlowosError:
        start = self._state.start
        place, number = worker.place or (0, 0)  # why its node is unreachable is known after that
        try:
            outcome = worker.running.wait(0.0 if start.where else _END_SECONDS)
            how = how_gone(start, outcome).removesuffix(worker.why_unreachable)
        except TimeoutError:
            worker.kill()
            how = "its connection ended"
        else:
            if start.where:
                self._state.print_left(outcome)
        if self._stopped or self._state.closed:
            return Cancelled(_STOPPED)
        program, stage = self._state.program, stages[place]
        how += worker.why_unreachable + (step_words(worker.step) if start.where else "")
        error = lost(program.step(stage, number), start.where, when, how)
        return program.in_rounds(error, stage, number, worker.round_of)


def _not_hired(start: Start, stages: Sequence[Stage], error: LaunchFailed) -> FlowosError:
    said = f"task {stages[0].steps[0].label!r}: {error}{remedy_of(error.__cause__)}"
    node = start.around.node
    if why := node.why_unreachable():
        gone = WorkerLost(said + why)
        gone.node = node.name
        return gone
    return LaunchFailed(said)


def _close(state: LanesState, lanes: Sequence[ProcessLane]) -> None:
    if os.getpid() != state.process:  # a forked child leaves its parent's workers alone
        return
    state.closed = True
    state.let_go(state.spares.close())
    ended = [lane.end() for lane in lanes]
    for running in {*filter(None, ended), *state.leaving}:
        try:
            running.wait(_END_SECONDS)
        except TimeoutError:
            running.stop(KILL_SECONDS)
            with contextlib.suppress(TimeoutError):  # of a node that does not answer
                running.wait(_KILLED_SECONDS)
    if all([lane.idle(_END_SECONDS) for lane in lanes]):
        _give_back(state, lanes)
        return
    with contextlib.suppress(RuntimeError):  # at exit no thread starts; all is given back anyway
        threading.Thread(target=_give_back, args=(state, lanes), daemon=True).start()


def _give_back(state: LanesState, lanes: Sequence[ProcessLane]) -> None:
    """Once no lane is busy. One may be for long, in code that no kill ends: it unpickles here."""
    for lane in lanes:
        lane.idle(_NO_LIMIT)
        lane.end()  # its run ended before the kill came
    state.close()
