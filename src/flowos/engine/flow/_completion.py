"""What becomes of a run as its stages end: which are ready next, which are run again, its end."""

from collections import deque
from collections.abc import Sequence

from flowos.engine.flow._failures import after_attempts, may_repeat
from flowos.engine.flow._inner_run import InnerRun, entered
from flowos.engine.flow._lanes import Values
from flowos.engine.flow._roster import Batch, Roster
from flowos.engine.flow._runs import FlowRun, MapBatch, SlotThread
from flowos.model import FlowosError, WorkerLost
from flowos.plan import Stage


class Completion(Roster):
    """What is ready is put into the roster's queue; a cond or loop is entered at once."""

    def _settle(
        self, worker: SlotThread, batch: Batch, results: Sequence[Values] | BaseException
    ) -> None:
        """Take in what a batch gave; stages that waited for it become ready. Under the lock."""
        run, stages = batch
        assert worker.place is not None
        worker.place.run = None
        worker.place.by = 0
        worker.settled = True
        if self._begun:
            self._end_batch_of(worker)
        if self._node.line or type(worker.place.held) is not int:  # else it is used at once again
            self._share.release(worker.place)
        if run.done:
            return
        if isinstance(results, BaseException):
            self._take_failure(run, stages[0], results)
            return
        if isinstance(run, MapBatch):
            run.split_rest()
            self._end_batch(run, stages[0])
            return
        for stage, values in zip(stages, results):  # noqa: B905 - as many, and often one
            self._keep(run, stage, values)
        run.left -= len(stages)
        if run.left == 0 or self._entering:
            self._go_on(run)

    def _begin(self, run: FlowRun) -> None:
        for number in run.schedule.ready:
            stage = self._stages[number]
            (self._entering if stage.flows else self._ready).append((run, stage))

    def _go_on(self, run: FlowRun | None) -> None:
        """End the run if nothing is left of it; enter the conds and loops that are ready. Under the
        lock. No recursion: a loop may have any number of rounds."""
        while True:
            while run is not None and run.left == 0:
                run = self._leave(run)
            while self._entering and self._entering[0][0].done:
                self._entering.popleft()
            if not self._entering:
                return
            run = entered(*self._entering.popleft())
            self._begin(run)

    def _leave(self, run: FlowRun) -> FlowRun | None:
        """The run that goes on now; None after the last one."""
        if not isinstance(run, InnerRun):
            run.done = True
            self._runs.discard(run)
            self._wake(run)
            return None
        try:
            after = run.after()
        except FlowosError as error:
            self._end_run(run.root, run.outer.failed(error))
            return None
        if isinstance(after, InnerRun):
            self._begin(after)
            return after
        self._keep(run.outer, run.stage, after)
        run.outer.left -= 1
        return run.outer

    def _keep(self, run: FlowRun, stage: Stage, values: Values) -> None:
        slots = run.slots
        for slot, value in zip(stage.outputs, values):  # noqa: B905 - as many, and often one
            slots[slot] = value
        for slot in stage.frees:
            slots[slot] = None
        for slot in stage.refcounted:
            run.readers[slot] -= 1
            if run.readers[slot] == 0:
                slots[slot] = None
        for number in stage.successors:
            run.predecessors_left[number] -= 1
            if run.predecessors_left[number] == 0:
                stage = self._stages[number]
                (self._entering if stage.flows else self._ready).append((run, stage))

    def _take_failure(self, run: FlowRun | MapBatch, stage: Stage, error: BaseException) -> None:
        """Repeat the stage, go on without it, or end the run. Under the lock."""
        attempt, task = run.attempt(stage), stage.steps[0].task
        again = attempt - run.first < task.retries and may_repeat(error, task)
        if isinstance(run, MapBatch):
            run.split_failed(after_attempts(error, attempt), again=again)
            self._end_batch(run, stage)
        elif again:
            run.repeat(stage)
            self._ready.append((run, stage))
        else:
            self._end_run(run.root, run.failed(after_attempts(error, attempt)))

    def _end_batch(self, batch: MapBatch, stage: Stage) -> None:
        """What it left goes first, in smaller batches, to any place. Under the lock."""
        rest = [each for each in batch.rest if not each.done]
        self._runs.update(rest)
        self._ready.extendleft((each, stage) for each in reversed(rest))
        batch.done = True
        self._runs.discard(batch)
        self._wake(batch)

    def _end_run(self, run: FlowRun | MapBatch, error: BaseException) -> None:
        """Under the lock."""
        if isinstance(error, WorkerLost):
            error.requeue, error.attempts = run.requeue, 1 + run.repeats
        run.error = error
        run.done = True
        self._runs.discard(run)
        self._ready = deque(entry for entry in self._ready if entry[0].root is not run)
        if self._node.line or not self._plain:
            self._share.withdraw(self, self._wanted())
        for place in self.places:
            if place.run is not None and place.run.root is run:
                place.stop()
        self._wake(run)
