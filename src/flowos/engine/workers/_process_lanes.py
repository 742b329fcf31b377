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
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from flowos._collected import when_collected
from flowos.engine.flow._bound import device_variables, most_cores
from flowos.engine.flow._failures import remedy_of
from flowos.engine.flow._inside import Surroundings, TaskFiles
from flowos.engine.flow._kernel import Halt
from flowos.engine.flow._lanes import BATCH_SECONDS, RowTimes, Values
from flowos.engine.launch._running import RunningProcess
from flowos.engine.workers._blobs import Packed, Unpackable, pack
from flowos.engine.workers._old_numpy import meet_old_names
from flowos.engine.workers._values import Parcel, Slab, SlabPool, max_files
from flowos.engine.workers._worker_failures import (
    input_unsendable,
    output_unreadable,
    over_limit,
)
from flowos.engine.workers._worker_output import Output
from flowos.engine.workers._worker_process import WorkerProcess, owners
from flowos.engine.workers._worker_program import WorkerProgram
from flowos.engine.workers._worker_start import KILL_SECONDS, Start, how_gone, start_worker
from flowos.engine.workers.worker import OWNER_SHIFT
from flowos.model import (
    Cancelled,
    DeviceNumbers,
    FlowosError,
    LaunchFailed,
    Outcome,
    Pairs,
    SliceFreed,
    TaskFailed,
    WorkerLost,
)
from flowos.plan import Schedule, Stage

_MOST_STAGES = 256
_KEPT_SHARE = 8
_KEPT_BYTES = 1 << 30
"""Idle memory files are kept up to an eighth of the node's memory for all workers together, and up
to this for each; as much again in this process."""
_TELL_SECONDS = 5.0
_END_SECONDS = 1.0
_KILLED_SECONDS = 10.0
_STOPPED = "the worker process was stopped"
_NO_LIMIT = -1.0


class ProcessLanes:
    """`count` lanes, each a process. Nothing is started before a stage is run."""

    most = _MOST_STAGES

    def __init__(
        self,
        schedule: Schedule,
        count: int,
        *,
        around: Surroundings,
        halts: Sequence[Halt] = (),
        python: str = sys.executable,
    ) -> None:
        start = Start(count=count, python=python, around=around, threads=most_cores(schedule))
        shop = _Shop(schedule, start)
        self.lanes = tuple(
            ProcessLane(shop, halt) for halt in halts or [Halt() for _ in range(count)]
        )
        self._end = partial(_close, shop, self.lanes)
        self._ending = when_collected(self, self._end)

    def close(self) -> None:
        """End all workers, wait for their end. Twice is once."""
        if self._ending.detach():
            self._end()


class ProcessLane:
    """One worker process at a time. See `_lanes` for what `run` and `stop` promise.

    halt: while it is on nothing is run, for a `stop` may come before its run is here.
    """

    def __init__(self, shop: "_Shop", halt: Halt) -> None:
        self._shop = shop
        self._halt = halt
        self._busy = threading.Lock()
        """Held by a run; the rest changes under `_lock`."""
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._bound: tuple[tuple[int, ...], Pairs] = ((), ())
        self._stopped = False

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        results: list[Values | None] = []
        self._run(stages, values, results, None)
        return results  # type: ignore[return-value]  # nothing is lost of what is returned

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        return self._run([stage] * len(rows), rows, results, BATCH_SECONDS)

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        self._bound = tuple(cores), device_variables({"": devices})

    def stop(self) -> None:
        with self._lock:
            if self._busy.locked():
                self._stopped = True
                if self._worker is not None:
                    self._worker.kill()

    def at(self, _: int) -> tuple[int, int]:
        return worker.at if (worker := self._worker) else (0, 0)

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
        if os.getpid() != self._shop.process:
            raise SliceFreed(f"this slice belongs to process {self._shop.process}: make another")
        with self._lock:
            if self._stopped:  # a stop that came too late for its run
                self._drop()
            self._stopped = False
        if self._halt.on:
            raise Cancelled(_STOPPED)
        if self._shop.closed:
            raise SliceFreed("the slice was freed: make another with fo.slice(...)")

    def _run(
        self,
        stages: Sequence[Stage],
        values: Sequence[Values],
        results: list[Values | None],
        seconds: float | None,
    ) -> RowTimes:
        with self._busy:
            self._begin()
            try:
                worker = self._worker or self._hire(stages)
                batch, unsendable = self._packed(stages, values)
                answers, failed, times = self._exchange(worker, stages, batch, results, seconds)
                for stage, answer in zip(stages, answers):  # noqa: B905 - fewer, where time was over
                    results.append(self._opened(stage, answer))
            finally:
                self._shop.output.drain()
        if failed:
            place, *details = failed
            raise self._shop.program.error(stages[place], *details)
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
    ) -> tuple[list[list[Any]], Sequence[Any], RowTimes]:
        """What the stages gave; (place, step, kind, ...) of the next one, if it failed; times."""
        limit = self._shop.program.limits.get(stages[0].number)
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
        shop = self._shop
        try:
            running, channel = start_worker(shop.start, lambda: self._stopped or shop.closed)
        except LaunchFailed as error:
            words = f"{error}{remedy_of(error.__cause__)}"
            raise LaunchFailed(f"task {stages[0].steps[0].label!r}: {words}") from error
        worker = WorkerProcess(running, channel, shop.start)
        with self._lock:
            self._worker = worker
            if self._stopped or shop.closed:
                worker.kill()
        try:
            worker.greet(shop.output.writers, shop.keep_bytes, shop.max_files)
            worker.teach(shop.program)
        except (EOFError, ConnectionError):
            self._detach()
            raise self._lost(worker, stages, " while it loaded the functions") from None
        except BaseException:
            self._drop()
            raise
        return worker

    def _packed(
        self, stages: Sequence[Stage], values: Sequence[Values]
    ) -> tuple[list[tuple[int, list[Any]]], FlowosError | None]:
        """The stages as they are sent, up to the first whose inputs cannot cross, and why."""
        batch: list[tuple[int, list[Any]]] = []
        shop = self._shop
        for stage, row in zip(stages, values, strict=True):
            try:
                batch.append((stage.number, shop.pack(stage, shop.files.as_inside(stage, row))))
            except Unpackable as error:
                refused = input_unsendable(stage, *error.args)
                refused.__cause__ = error.__cause__
                return batch, refused
        return batch, None

    def _opened(self, stage: Stage, values: list[Any]) -> list[Any]:
        """Values that only workers read stay packed."""
        kept = self._shop.program.kept[stage.number]
        for i, slot in enumerate(stage.outputs):
            value = values[i]
            if type(value) is Packed and slot not in kept:
                try:
                    values[i] = value.take()
                except Exception as error:
                    why = f"{type(error).__name__}: {error}"
                    raise output_unreadable(stage, slot, why) from error
        return self._shop.files.as_outside(stage, values)

    def _drop(self) -> None:
        """End the worker; the next run starts another."""
        worker = self._detach()
        if worker is not None:
            worker.kill()

    def _detach(self) -> WorkerProcess | None:
        worker = self._worker
        if worker is not None:
            self._shop.leaving.append(worker.running)  # first: a close on another thread sees it
            self._worker = None
            worker.forget()
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
            worker.running.wait(_TELL_SECONDS)
        if self._stopped or self._shop.closed:
            return Cancelled(_STOPPED)
        results += [None] * worker.stage
        return over_limit(stages[worker.stage].steps[0], batch[worker.stage][1])

    def _lost(self, worker: WorkerProcess, stages: Sequence[Stage], when: str = "") -> FlowosError:
        start = self._shop.start
        try:
            outcome = worker.running.wait(0.0 if start.where else _TELL_SECONDS)
            how = how_gone(start, outcome)
        except TimeoutError:
            worker.kill()
            how = f"its connection ended{worker.why_unreachable}"
        else:
            if start.where:
                self._shop.print_left(outcome)
        if self._stopped or self._shop.closed:
            return Cancelled(_STOPPED)
        place, number = worker.place or (0, 0)
        program, stage = self._shop.program, stages[place]
        label = program.step(stage, number).label
        error = WorkerLost(f"task {label!r}: its worker process{start.where} is gone{when}: {how}")
        return program.in_rounds(error, stage, number, worker.round_of)


class _Shop:
    """What the lanes of a slice share."""

    def __init__(self, schedule: Schedule, start: Start) -> None:
        count = start.count
        self.program = WorkerProgram(schedule, image=start.around.named)
        self.start = start
        self.files = TaskFiles(schedule, start.around)
        if start.around.in_image:
            meet_old_names()
        memory = start.around.node.ledger.whole.memory_bytes
        self.keep_bytes = min(memory // _KEPT_SHARE // count, _KEPT_BYTES)
        self.process = os.getpid()
        self.closed = False
        self.output = Output()
        self.leaving: deque[RunningProcess] = deque(maxlen=count * 4)
        self._lock = threading.Lock()
        self.max_files = max(1, max_files() // count)
        self._pool = SlabPool(next(owners) << OWNER_SHIFT, self.keep_bytes, max_files())
        self._constants: dict[int, list[Any]] = {}

    def pack(self, stage: Stage, values: Values) -> list[Any]:
        """The stage's inputs and constants. Constants are packed once."""
        constants = self._constants.get(stage.number)
        if constants is None:
            constants = self._pack(
                self.files.constants_inside(stage, self.program.constants[stage.number])
            )
            self._constants[stage.number] = constants
        return self._pack(values) + constants

    def _pack(self, values: Values) -> list[Any]:
        return pack(values, self._parcel, self._take, self._pool)

    def _parcel(self) -> Parcel:
        with self._lock:
            return self._pool.parcel()

    def _take(self, size: int) -> tuple[int, Slab]:
        with self._lock:
            return self._pool.take(size)

    def print_left(self, outcome: Outcome) -> None:
        """What a worker of another node had printed and could not send on any more."""
        for writer, data in zip(self.output.writers, (outcome.stdout, outcome.stderr), strict=True):
            os.write(writer, data)
        self.output.drain()

    def close(self) -> None:
        with self._lock:
            self._pool.close()
        self.output.close()


def _close(shop: _Shop, lanes: Sequence[ProcessLane]) -> None:
    if os.getpid() != shop.process:  # a forked child leaves its parent's workers alone
        return
    shop.closed = True
    ended = [lane.end() for lane in lanes]
    for running in {*filter(None, ended), *shop.leaving}:
        try:
            running.wait(_END_SECONDS)
        except TimeoutError:
            running.stop(KILL_SECONDS)
            with contextlib.suppress(TimeoutError):  # of a node that does not answer
                running.wait(_KILLED_SECONDS)
    if all([lane.idle(_END_SECONDS) for lane in lanes]):
        _give_back(shop, lanes)
        return
    with contextlib.suppress(RuntimeError):  # at exit no thread starts; all is given back anyway
        threading.Thread(target=_give_back, args=(shop, lanes), daemon=True).start()


def _give_back(shop: _Shop, lanes: Sequence[ProcessLane]) -> None:
    """Once no lane is busy. One may be for long, in code that no kill ends: it unpickles here."""
    for lane in lanes:
        lane.idle(_NO_LIMIT)
        lane.end()  # its run ended before the kill came
    shop.close()
