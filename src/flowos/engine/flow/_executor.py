"""The lanes of one slice at work: which thread runs which stage, and what becomes ready.

A calling thread is a worker itself: it takes a free place and runs what is ready, so that a flow
that is one chain never changes threads. Helpers come in while more is ready than is taken: whoever
takes a stage, sees another one ready and a place free, wakes one helper and hands it the place.
All that is shared changes under one lock, taken once per batch of stages. In threads a batch has
only stages that nothing waits for, and a worker that finds nothing else takes one of its last.

Success: a run ends with its last stage. Failure: the first error ends the run at once; what it
still has running is stopped, its result dropped. Cancel (`end`): every run ends with the error
given, no stage starts any more, lanes are stopped and closed, threads get some seconds to finish.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from flowos.engine._hold_end import NO_END, HoldEnd
from flowos.engine._ledger import ResourceLedger
from flowos.engine.flow._bound import is_bound, seen_devices
from flowos.engine.flow._completion import Completion
from flowos.engine.flow._core_share import (
    cores_of,
    devices_of,
    needs_held,
    progress_callers,
    take_back,
    wake_askers_of_lent,
)
from flowos.engine.flow._failures import not_run
from flowos.engine.flow._inner_run import InnerRun
from flowos.engine.flow._kernel import pick
from flowos.engine.flow._lanes import BATCH_SECONDS, Lanes, Values
from flowos.engine.flow._roster import Batch, yield_to_holder
from flowos.engine.flow._runs import (
    ExecutionSlot,
    FlowRun,
    MapBatch,
    OnDone,
    OnStage,
    SlotThread,
    TimedRun,
    raise_error_of,
    run_stages,
    set_pace,
)
from flowos.model import Cancelled, EnginePlan, FlowosError, SliceRefused
from flowos.plan import Schedule, Stage, lacking_time

_TICK_SECONDS = 0.002


class LoneStage(NamedTuple):
    """The only stage of a flow.

    inputs, outputs: take its inputs out of values, the flow's outputs out of these and results.
    """

    stage: Stage
    inputs: Callable[[Sequence[object]], Values]
    outputs: Callable[[Sequence[object]], Values]


def lone_stage(schedule: Schedule) -> LoneStage | None:
    """Where there is but one, of Python tasks."""
    if len(schedule.stages) != 1 or schedule.presets:
        return None
    (stage,) = schedule.stages
    if not stage.in_python or stage.flows or not stage.steps[0].task.requeue:
        return None
    place_of = {slot: i for i, slot in enumerate((*range(len(schedule.inputs)), *stage.outputs))}
    places = [place_of[slot] for slot in schedule.outputs]
    return LoneStage(stage, pick(stage.inputs), pick(places))


def _refuse_in_on_progress() -> None:
    if threading.get_ident() in progress_callers:
        raise SliceRefused("slice: nothing runs in on_progress of a measurement: run it after that")


class Executor(Completion):
    """Runs of one schedule on the places of one slice.

    ledgers: of this slice and of the node. helpers: threads besides the callers. hold_end: of the
    node.
    """

    def __init__(
        self,
        schedule: Schedule,
        lanes: Lanes,
        places: Sequence[ExecutionSlot],
        ledgers: tuple[ResourceLedger, ResourceLedger],
        *,
        helpers: int,
        on_stage: OnStage | None = None,
        hold_end: HoldEnd = NO_END,
    ) -> None:
        super().__init__(schedule, places, ledgers, max_batch=lanes.max_batch, helpers=helpers)
        self._lanes = lanes
        self._on_stage = on_stage
        if on_stage is not None and lanes.max_batch == 1:
            self._batched = [False] * len(self._stages)
        self._left_seconds = hold_end.left_seconds
        self._lone = lone_stage(schedule) if self._plain and not on_stage else None
        bound = self._prepares and lanes.max_batch > 1  # threads are never bound
        self._only = None if any(self._retries) or bound else self._lone
        self._inputs = [pick(stage.inputs) for stage in self._stages]
        self._why: Callable[[], FlowosError] = Cancelled

    def stages_of(self, sites: EnginePlan) -> Sequence[Stage]:  # noqa: ARG002 - others look at it
        """What `run` runs. sites: the engines of tasks with several bodies."""
        return self.schedule.stages

    def run(
        self, values: Sequence[object], first: int = 1, lone: LoneStage | None = None
    ) -> list[object] | None:
        """Run once in this thread and whichever helpers there is work for; None once ended.

        first: see `FlowRun`. lone: may be run instead of all of the flow.
        """
        only = lone or self._only
        if only is not None and first == 1 and not self._node.line:
            try:
                place = self._free.pop()
            except IndexError:  # all places are taken: queue up
                pass
            else:
                try:
                    place.held = self._node.idle.pop()
                except IndexError:  # all cores are
                    self._free.append(place)
                else:
                    return self._run_only(only, place, values)
        run = self.start(values, partial(FlowRun, first=first))
        return None if run is None else self.finish(run)

    def start(
        self, values: Sequence[object], made: Callable[..., FlowRun] = FlowRun
    ) -> FlowRun | None:
        """Begin a run; None once the executor has ended.

        Raises SliceRefused if a function calls it that a measurement runs, alone on the node.
        """
        _refuse_in_on_progress()
        run = made(self.schedule, values)
        with self._lock:
            if self.ended:
                return None
            if not run.done:
                self._runs.add(run)
                self._begin(run)
                if self._entering:
                    self._go_on(None)
        return run

    def submit(self, values: Sequence[object], on_done: OnDone, first: int = 1) -> FlowRun | None:
        """Begin a run that no thread waits for; None once the executor has ended.

        Helpers run it. Where there are none, this thread does before it returns.
        """
        run = self.start(values, partial(FlowRun, on_done=on_done, first=first))
        if run is None:
            return None
        if not self.schedule.stages:
            on_done(run)
        elif run.done:
            self._announce()
        elif self._max_helpers:
            self.help()
        else:
            self.work_on(run)
        return run

    @property
    def ready(self) -> int:
        """See `Lanes`."""
        return self._lanes.ready

    @property
    def runs_in_threads(self) -> bool:
        """Whether Python tasks share this process and its interpreter lock."""
        return self._max_batch == 1

    @property
    def maps_in_batches(self) -> bool:
        """Whether the flow is one stage of Python tasks, so that `start_batch` may be used."""
        return self._lone is not None

    def start_batch(
        self, items: Sequence[Values], *, goes_on: bool, first: int = 1
    ) -> MapBatch | None:
        """Begin the runs of these items, one after the other; None once the executor has ended."""
        assert self._lone is not None
        _refuse_in_on_progress()
        batch = MapBatch(items, goes_on=goes_on, first=first)
        with self._lock:
            if self.ended:
                return None
            self._runs.add(batch)
            self._ready.append((batch, self._lone.stage))
        return batch

    def finish_batch(self, batch: MapBatch) -> list[list[object]]:
        """Work until the batch is done; the outputs of the items that came to an end."""
        assert self._lone is not None
        self.work_on(batch)
        return batch.outputs(self._lone.outputs)

    def finish(self, run: FlowRun) -> list[object]:
        """Work until the run is done; its outputs, or its error."""
        self.work_on(run)
        return self.outputs(run)

    def outputs(self, run: FlowRun) -> list[object]:
        """Of a run that is done; raises its error."""
        raise_error_of(run)
        slots = run.slots
        return [slots[i] for i in self.schedule.outputs]

    def work_on(self, run: FlowRun | MapBatch) -> None:
        """Work until the run is done. One thread at most may do so."""
        if run.done:
            return
        worker = run.waiter = SlotThread()
        worker.thread = threading.get_ident()
        if any(place.by == worker.thread for place in self.places):
            worker.only = run
        try:
            self._work(worker, run)
        except BaseException:
            self._abandon(worker)
            raise
        finally:
            take_back(worker, self)

    def cancel(self, run: FlowRun | MapBatch, error: FlowosError) -> None:
        """End one run with this error."""
        with self._lock:
            if not run.done:
                self._end_run(run, error)
        self._wake_others()
        self._announce()

    def end(self, error: Callable[[], FlowosError], seconds: float) -> None:
        """End every run with this error and leave nothing behind; threads get some seconds."""
        with self._lock:
            if self.ended:
                return
            self._why = error
            self.ended = True
            self._ready.clear()
            self._begun.clear()
            for place in self.places:
                if place.by:
                    place.stop()
            for run in tuple(self._runs):
                self._end_run(run, error())
            while self._parked:
                self._parked.pop().gate.release()
            helpers = tuple(self._helpers)
            self._share.withdraw(self)
        self._wake_others()
        self._announce()
        self._lanes.close()
        until = time.monotonic() + seconds
        self._await_idle(until)
        for helper in helpers:
            # One whose start was interrupted may not be joined; should it begin, it ends at once.
            if helper is not threading.current_thread() and helper.is_alive():
                helper.join(max(0.0, until - time.monotonic()))

    def leave_behind(self) -> None:
        """In a forked child: its threads are not here, and one may have held the lock."""
        self._lock = threading.Lock()
        self.ended = True

    def _await_idle(self, until: float) -> None:
        """Until no other thread is at a place: callers are not ours to be joined."""
        known = (0, threading.get_ident())
        while any(place.by not in known for place in self.places) and time.monotonic() < until:
            time.sleep(_TICK_SECONDS)

    def _run_only(
        self, only: LoneStage, place: ExecutionSlot, values: Sequence[object]
    ) -> list[object] | None:
        """A flow that is one stage needs no queue, no lock and no second thread."""
        stage = only.stage
        place.stop_flag.on = False
        place.by = threading.get_ident()
        try:
            if self.ended:  # looked at after `by` is set: `end` looks the other way round
                return None
            (results,) = place.python.run((stage,), (only.inputs(values),))
            if self.ended:
                raise self._why()
        except FlowosError as error:
            if self.ended or isinstance(error, Cancelled):
                raise self._why() from None
            raise
        except Exception as error:
            raise not_run(stage.label, error) from error
        finally:
            place.by = 0
            held, place.held = place.held, None
            if held is not None:  # else it was lent to a run that the task made
                self._node.idle.append(held)
            self._free.append(place)
            if self._ready or self._begun:
                self.help()
            if self._node.line:
                self._node.wake_askers(self)
        return list(only.outputs((*values, *results)))

    def _work(self, worker: SlotThread, until: FlowRun | MapBatch | None) -> None:
        """What a worker does: a caller until its run is done, a helper until the end."""
        batch: Batch | None = None
        results: Sequence[Values] | BaseException = ()
        worker.thread = threading.get_ident()
        while True:
            if self._lock.locked():
                yield_to_holder(self._lock)
            with self._lock:
                if batch is not None:
                    self._settle(worker, batch, results)
                    results = ()  # a traceback may hold this frame, and a frame no error
                done = self.ended if until is None else until.done
                pause = done or len(self._announced) > 0
                if pause:
                    self._give_back(worker)
                batch = None if pause else self._next(worker)
                if self._node.line and self._leave_line():
                    worker.settled = True
            if worker.settled and (self._node.line or worker.lent):
                worker.settled = False
                self._wake_others()
                wake_askers_of_lent(worker, self)
            if pause:
                self._announce()
                if done:
                    return
            elif batch is None:
                worker.gate.acquire()
            else:
                results = self._execute(worker, batch, until is not None)

    def _run_batch(self, worker: SlotThread, run: FlowRun, stages: list[Stage]) -> list[Values]:
        """The stage and, until the time is over, those next that no other worker has begun."""
        place, now = worker.place, time.monotonic()
        assert place is not None
        results: list[Values] = []
        until, began = now + BATCH_SECONDS, now
        while True:
            stage = stages[-1]
            values = self._inputs[stage.number](run.slots)
            results += place.python.run((stage,), (values,))
            if (now := time.monotonic()) > until or place.held is None:  # a run in it has the core
                break
            try:
                stages.append(worker.next.popleft())
            except IndexError:  # the last one was begun
                break
        set_pace(place, now - began)
        return results

    def _execute(
        self, worker: SlotThread, batch: Batch, calling: bool
    ) -> Sequence[Values] | BaseException:
        run, stages = batch
        place = worker.place
        assert place is not None
        lane = place.python if self._python[stages[0].number] else place.commands
        if self._prepares:
            needs = needs_held(place, stages[0].needs)
            devices = seen_devices(stages[0].needs, devices_of(place))
            lane.bind(cores_of(place) if is_bound(needs) else (), devices)
            if needs.remaining_seconds and (why := lacking_time(needs, self._left_seconds())):
                return SliceRefused(f"slice: task {stages[0].steps[0].label!r} needs {why}")
        try:
            if type(run) is not FlowRun:
                if isinstance(run, MapBatch):
                    run.run(place.python, stages[0])
                    return ()
                assert isinstance(run, (TimedRun, InnerRun))
                return run.run(self._on_stage, place, lane, stages)
            if self._max_batch == 1 and self._on_stage is None:
                if self._batched[stages[0].number]:
                    return self._run_batch(worker, run, stages)
                return lane.run(stages, (self._inputs[stages[0].number](run.slots),))
            return run_stages(run, self._on_stage, place, lane, stages)
        except FlowosError as error:
            return error
        except BaseException as error:
            if calling and not isinstance(error, Exception):
                raise  # a signal's: what a task raises is TaskFailed by now
            failed = not_run(stages[-1 if self._max_batch == 1 else 0].label, error)
            failed.__cause__ = error
            return failed
