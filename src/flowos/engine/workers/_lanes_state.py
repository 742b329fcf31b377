"""What the lanes of a slice share: its program, memory files, output, and workers that leave."""

import os
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from flowos.engine.flow._inside import TaskFiles
from flowos.engine.flow._lanes import Values
from flowos.engine.launch._running import RunningProcess
from flowos.engine.workers._blobs import pack
from flowos.engine.workers._limits import limit_there
from flowos.engine.workers._old_numpy import meet_old_names
from flowos.engine.workers._spare_workers import SpareWorkers
from flowos.engine.workers._values import Parcel, Slab, SlabPool, max_files
from flowos.engine.workers._worker_output import Output
from flowos.engine.workers._worker_process import OWNER_SHIFT, WorkerProcess, owners
from flowos.engine.workers._worker_program import WorkerProgram
from flowos.engine.workers._worker_start import Start
from flowos.model import Outcome
from flowos.plan import Schedule, Stage

_KEPT_SHARE = 8
_KEPT_BYTES = 1 << 30
"""Idle memory files are kept up to an eighth of the node's memory for all workers together, and up
to this for each; as much again in this process."""


class LanesState:
    """What the lanes of a slice share."""

    def __init__(self, schedule: Schedule, start: Start) -> None:
        count = start.count
        node = start.around.node
        self.program = WorkerProgram(
            schedule, image=start.around.named, node="" if node.is_here else node.name
        )
        self.start = start
        self.files = TaskFiles(schedule, start.around)
        if start.around.in_image:
            meet_old_names()
        self._sent_once = not node.is_here
        self.keep_bytes = min(node.ledger.whole.memory_bytes // _KEPT_SHARE // count, _KEPT_BYTES)
        self.process = os.getpid()
        self.closed = False
        self.output = Output()
        self.spares = SpareWorkers()
        self.leaving: deque[RunningProcess] = deque(maxlen=count * 4)
        self._lock = threading.Lock()
        self.max_files = max(1, max_files() // count)
        first, limit = next(owners) << OWNER_SHIFT, limit_there(node)
        self._pool = SlabPool(first, self.keep_bytes, max_files(), limit)
        self._constants: dict[int, list[Any]] = {}

    def pack(self, stage: Stage, values: Values) -> list[Any]:
        """The stage's inputs and constants, which are packed once but for files of other nodes."""
        constants = self._constants.get(stage.number)
        if constants is None:
            constants = self._pack(
                self.files.constants_inside(stage, self.program.constants[stage.number])
            )
            if not self.files.may_move(stage):
                self._constants[stage.number] = constants
        return self._pack(values, once=self._sent_once) + constants

    def _pack(self, values: Values, *, once: bool = False) -> list[Any]:
        return pack(values, self._parcel, self._take, self._pool, once=once)

    def _parcel(self) -> Parcel:
        with self._lock:
            return self._pool.parcel()

    def _take(self, size: int) -> tuple[int, Slab]:
        with self._lock:
            return self._pool.take(size)

    def let_go(self, workers: Iterable[WorkerProcess]) -> None:
        """Let them end by themselves."""
        for worker in workers:
            self.leaving.append(worker.running)  # first: a close on another thread sees it
            worker.forget()

    def print_left(self, outcome: Outcome) -> None:
        """What a worker of another node had printed and could not send on any more."""
        for writer, data in zip(self.output.writers, (outcome.stdout, outcome.stderr), strict=True):
            os.write(writer, data)
        self.output.drain()

    def close(self) -> None:
        with self._lock:
            self._pool.close()
        self.output.close()
