"""Which threads of an executor sleep, which are at a place, and which stage goes there next.

A worker that finds nothing to run gives its place back and is parked. What the node cannot give now
is waited for in the line of its ledger, whose `wake` has the parked look again. A task that runs a
slice itself waits for that run meanwhile: its cores are lent to it, and its place too where the
slice is its own.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from flowos.engine._ledger import ResourceLedger
from flowos.engine.flow._bound import is_bound
from flowos.engine.flow._core_share import ONE, CoreShare, lend
from flowos.engine.flow._runs import ExecutionSlot, FlowRun, MapBatch, SlotThread
from flowos.model import Needs
from flowos.plan import Schedule, Stage

Batch = tuple[FlowRun | MapBatch, list[Stage]]
_YIELDS = 8
"""Before a thread stands in line all the same: of many that wait, the holder may be the last."""
_AHEAD = 256
"""How far behind a stage that does not fit another is looked for that does."""


def yield_to_holder(lock: threading.Lock) -> None:
    """A holder of the lock that does not go on waits for the interpreter's lock: it gets it here.

    A thread in line for the lock would be woken at each release meanwhile, and find it taken.
    """
    for _ in range(_YIELDS):
        time.sleep(0)
        if not lock.locked():
            return


class Roster:
    """The places and workers of an executor, its runs, the queue of what is ready, and conds and
    loops that are to be entered.

    ledgers: of the slice and of the node. max_batch: how many stages a lane may be given at once.
    """

    def __init__(
        self,
        schedule: Schedule,
        places: Sequence[ExecutionSlot],
        ledgers: tuple[ResourceLedger, ResourceLedger],
        *,
        max_batch: int,
        helpers: int,
    ) -> None:
        self.schedule = schedule
        self.ended = False
        self.places = tuple(places)
        self._max_batch = max_batch
        self._stages = stages = schedule.all_stages
        needs = {id(stage.needs): stage.needs for stage in stages}.values()  # to compare is slow
        self._plain = all(each == ONE for each in needs)
        self._python = [stage.in_python for stage in stages]
        self._bound = [is_bound(stage.needs) for stage in stages]
        self._batched = [
            stage.steps[0].fusable and (max_batch > 1 or not stage.successors) for stage in stages
        ]
        """Whether a batch may have it; in threads, if nothing waits for its results."""
        self._prepares = any(
            is_bound(each) or each.generic_resources or each.remaining_seconds
            for asked in needs
            for each in asked.choices
        )
        """Whether a lane is bound, or the time looked at, before a stage runs."""
        self._requeues = [stage.steps[0].task.requeue for stage in stages]
        self._retries = [stage.steps[0].task.retries for stage in stages]
        own, self._node = ledgers
        self._share = CoreShare(self.places, own, self._node, plain=self._plain)
        self._lock = threading.Lock()
        self._runs: set[FlowRun | MapBatch] = set()
        self._ready: deque[tuple[FlowRun | MapBatch, Stage]] = deque()
        self._entering: deque[tuple[FlowRun, Stage]] = deque()
        self._begun: list[tuple[FlowRun, deque[Stage]]] = []
        """What threads have taken and not begun: they go on with it without the lock, and a worker
        that finds nothing else begins it from the other end."""
        self._free = list(self.places)
        self._parked: list[SlotThread] = []
        self._helpers: list[threading.Thread] = []
        self._announced: deque[FlowRun] = deque()
        self._max_helpers = helpers

    def help(self) -> None:
        """Let helpers begin what is ready, for a caller that will not work at once."""
        with self._lock:
            self._call_help()

    def wake(self) -> None:
        """There is more of the node: whoever sleeps looks whether it is enough."""
        with self._lock:
            if self._is_work() and not self._parked:
                self._call_help()
            while self._is_work() and self._parked:
                self._parked.pop().gate.release()

    def is_helper(self) -> bool:
        """Whether this thread is one of those that run what is submitted."""
        return threading.current_thread() in self._helpers

    def _wake(self, run: FlowRun | MapBatch) -> None:
        if run.waiter in self._parked:
            self._parked.remove(run.waiter)
            run.waiter.gate.release()
        if run.on_done is not None:
            self._announced.append(run)

    def _announce(self) -> None:
        """Call what waits for runs that are done. Not under the lock, and at no place: it may take
        long, or run this very slice."""
        while self._announced:
            try:
                run = self._announced.popleft()
            except IndexError:  # another thread came first
                return
            assert run.on_done is not None
            run.on_done(run)

    def _wake_others(self) -> None:
        """What was released may be what other slices wait for. Not under the lock."""
        if self._node.line:
            self._node.wake_askers(self)

    def _abandon(self, worker: SlotThread) -> None:
        """Its thread leaves in the middle, by what a signal's handler raised."""
        with self._lock:
            if worker in self._parked:
                self._parked.remove(worker)
            self._end_batch_of(worker)
            if worker.place is not None:
                self._put_back(worker)

    def _next(self, worker: SlotThread) -> Batch | None:
        """What the worker runs now, or None: then it is parked. Under the lock."""
        if worker.place is None and self._is_work():
            worker.place = self._free.pop() if self._free else self._own_place(worker)
        if worker.place is not None:
            batch = self._take(worker, worker.place)
            if batch is None and self._is_work() and lend(worker):
                batch = self._take(worker, worker.place)
            if batch is not None:
                worker.place.run = batch[0]
                worker.place.by = worker.thread
                worker.place.stop_flag.on = False
                if self._free and self._is_work():
                    self._call_help(worker)
                return batch
            self._put_back(worker)
        elif self._is_work():  # the thread may need no more than what its place holds
            lend(worker)
        self._parked.append(worker)
        return None

    def _leave_line(self) -> bool:
        """Leave it where nothing is ready, or all places are of tasks that wait: a claim that no
        thread would take keeps others waiting. Whether one is left. Under the lock."""
        waiting = {worker.thread for worker in self._parked}
        if self._is_work() and (self._free or any(place.by in waiting for place in self.places)):
            return False
        return self._share.withdraw(self)

    def _own_place(self, worker: SlotThread) -> ExecutionSlot | None:
        """That of a task which made this run and waits for it. Under the lock."""
        for place in self.places:
            if place.by == worker.thread:
                self._share.release(place)
                worker.outer = (place.run,)
                return place
        return None

    def _put_back(self, worker: SlotThread) -> None:
        """Under the lock."""
        place, worker.place = worker.place, None
        assert place is not None
        if place.held is not None:
            self._share.release(place)
        if worker.outer is None:
            place.by = 0
            self._free.append(place)
        else:
            (place.run,), worker.outer = worker.outer, None
            place.by = worker.thread
            place.stop_flag.on = self.ended or (place.run is not None and place.run.done)

    def _take(self, worker: SlotThread, place: ExecutionSlot) -> Batch | None:
        """The first stage in order of becoming ready that fits. Under the lock."""
        ready = self._ready
        while ready and ready[0][0].done:
            ready.popleft()
        if not ready:
            return self._take_begun(worker, place) if self._begun else None
        if not self._plain or worker.only is not None:
            return self._take_fitting(worker, place)
        if not self._holds_core(place):
            return None
        run, stage = ready.popleft()
        return self._taken(worker, run, stage, place)

    def _holds_core(self, place: ExecutionSlot) -> bool:
        if place.held is None:
            place.held = self._share.acquire(ONE, self)
        return place.held is not None

    def _take_begun(self, worker: SlotThread, place: ExecutionSlot) -> Batch | None:
        """The last stage of another worker's batch. Under the lock, which that one does without."""
        for run, stages in self._begun:
            if run.done or worker.only not in (None, run):
                continue
            with suppress(IndexError):  # begun meanwhile
                stage = stages.pop()
                if self._holds_core(place):
                    return run, [stage]
                stages.append(stage)
                return None
        return None

    def _is_work(self) -> bool:
        """Whether a stage could be begun. Under the lock."""
        return bool(self._ready) or any(stages for _, stages in self._begun)

    def _take_fitting(self, worker: SlotThread, place: ExecutionSlot) -> Batch | None:
        tried: list[Needs] = []
        for at, (run, stage) in enumerate(islice(self._ready, None if worker.only else _AHEAD)):
            if run.done or stage.needs in tried or worker.only not in (None, run.root):
                continue
            for needs in stage.needs.choices:
                if place.held is None:
                    place.held = self._share.acquire(needs, self)
            if place.held is not None:
                del self._ready[at]
                if stage.needs.otherwise:
                    self._want_no_more(stage.needs)
                    worker.settled = True
                return self._taken(worker, run, stage, place)
            tried.append(stage.needs)
        return None

    def _end_batch_of(self, worker: SlotThread) -> None:
        """What it has not begun is ready as before. Under the lock."""
        for run, stages in self._begun:
            if stages is worker.next and not run.done:
                self._ready.extendleft((run, stage) for stage in reversed(stages))
        worker.next.clear()
        self._begun = [each for each in self._begun if each[1] is not worker.next]

    def _want_no_more(self, needs: Needs) -> None:
        """What would have done too is left, unless others here wait for it. Under the lock."""
        if all(stage.needs != needs for _, stage in self._ready):
            self._share.withdraw(self, self._wanted())

    def _wanted(self) -> set[Needs]:
        """What is waited for. Under the lock."""
        return {each for needs in {s.needs for _, s in self._ready} for each in needs.choices}

    def _taken(
        self, worker: SlotThread, run: FlowRun | MapBatch, stage: Stage, place: ExecutionSlot
    ) -> Batch:
        if not self._requeues[stage.number]:
            run.root.requeue = False
        in_threads = self._max_batch == 1
        if isinstance(run, MapBatch) or (in_threads and type(run) is not FlowRun):
            return run, [stage]
        stages = self._batch(run, stage, place)
        if in_threads and len(stages) > 1:
            worker.next.extend(stages[1:])
            del stages[1:]
            self._begun.append((run, worker.next))
        return run, stages

    def _batch(self, run: FlowRun, first: Stage, place: ExecutionSlot) -> list[Stage]:
        """Some stages for one message, fewer towards the end so that all lanes end together."""
        stages = [first]
        if self._plain and self._batched[first.number]:
            share = 1 + len(self._ready) // (2 * len(self.places))
            while self._ready and len(stages) < min(place.pace, share):
                owner, stage = self._ready[0]
                if owner is not run or not self._batched[stage.number]:
                    break
                if self._bound[stage.number] != self._bound[first.number]:
                    break
                stages.append(stage)
                self._ready.popleft()
        return stages

    def _call_help(self, caller: SlotThread | None = None) -> None:
        """Wake one helper, which will wake the next; none where there is no use. Under the lock."""
        if not (self._free and self._is_work()):
            return
        if self._plain and not (self._has_core() or (caller and lend(caller) and self._has_core())):
            return
        if self._parked:
            worker = self._parked.pop()
            worker.place = self._free.pop()
            worker.gate.release()
        elif len(self._helpers) < self._max_helpers:
            worker = SlotThread()
            worker.place = self._free.pop()
            name = f"flowos-{len(self._helpers)}"
            helper = threading.Thread(
                target=self._work, args=(worker, None), name=name, daemon=True
            )
            self._helpers.append(helper)
            helper.start()

    def _has_core(self) -> bool:
        """Else we stand in the line for one."""
        node = self._node
        return bool(node.idle and not node.line) or node.can(ONE, self)

    def _give_back(self, worker: SlotThread) -> None:
        if worker.place is not None:
            self._put_back(worker)
            self._call_help()

    def _work(self, worker: SlotThread, until: FlowRun | MapBatch | None) -> None:
        raise NotImplementedError
