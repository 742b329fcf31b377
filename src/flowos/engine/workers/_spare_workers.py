"""Workers whose lanes went on with other GPUs: each waits for the next task that has its own."""

import threading

from flowos.engine.workers._worker_process import WorkerProcess

Gpus = tuple[int | str, ...]
_Spare = tuple[Gpus, WorkerProcess]


class SpareWorkers:
    """At most one for each GPU, which none of the lanes that were given others holds any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[_Spare] = []
        self._closed = False

    def exchange(
        self, had: Gpus, worker: WorkerProcess | None, gpus: Gpus
    ) -> tuple[WorkerProcess | None, list[WorkerProcess]]:
        """Keep the worker that used `had`. Returns one that used `gpus` or none, and those to end:
        what they hold of the memory of these GPUs is for others now."""
        clash = {*had, *gpus}
        with self._lock:
            mine = next((each for each in self._kept if each[0] == gpus), None)
            others = [each for each in self._kept if each is not mine]
            ended = [each for each in others if clash.intersection(each[0])]
            self._kept = [each for each in others if each not in ended]
            if worker is not None:
                ends = self._closed or set(had).intersection(gpus)
                (ended if ends else self._kept).append((had, worker))
        return mine and mine[1], [each for _, each in ended]

    def close(self) -> list[WorkerProcess]:
        """Keep none from now on. Returns those that were kept."""
        with self._lock:
            self._closed = True
            kept, self._kept = self._kept, []
        return [worker for _, worker in kept]
