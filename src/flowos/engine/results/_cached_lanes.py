"""Lanes that look for kept results first, around the lanes that run what is not there."""

from collections.abc import Callable, Sequence
from itertools import islice
from time import perf_counter, thread_time

from flowos.engine.flow._lanes import BATCH_SECONDS, Lane, PythonLane, RowTimes, Values
from flowos.engine.results._slice_results import SliceResults
from flowos.model import DeviceNumbers, FlowosError
from flowos.plan import Stage

OnHit = Callable[[Stage, Values, Values], None]
"""Takes a task whose result was found, its inputs, and the result."""


class CachedLane:
    """See `_lanes` for what `run` and `stop` promise. on_hit: called for each result found."""

    def __init__(self, inner: Lane, results: SliceResults, on_hit: OnHit | None = None) -> None:
        self._inner = inner
        self._results = results
        self._on_hit = on_hit

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        found: dict[int, Values] = {}
        keys: dict[int, bytes] = {}
        for i, (stage, row) in enumerate(zip(stages, values, strict=True)):
            if self._results.keeps(stage):
                key = keys[i] = self._results.key(stage, row)
                kept = self._results.find(stage, key, row)
                if kept is not None:
                    found[i] = kept
                    self._hit(stage, row, kept)
        left = [i for i in range(len(stages)) if i not in found]
        if left:
            given = self._inner.run([stages[i] for i in left], [values[i] for i in left])
            for i, row in zip(left, given, strict=True):
                found[i] = row
                if i in keys:
                    self._results.keep(stages[i], keys[i], row)
        return [found[i] for i in range(len(stages))]

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        self._inner.bind(cores, devices)

    def stop(self) -> None:
        self._inner.stop()

    def _hit(self, stage: Stage, row: Values, found: Values) -> None:
        self._results.hit()
        if self._on_hit is not None:
            self._on_hit(stage, row, found)


class CachedPythonLane(CachedLane):
    """The same for a lane of Python tasks."""

    def __init__(
        self, inner: PythonLane, results: SliceResults, on_hit: OnHit | None = None
    ) -> None:
        super().__init__(inner, results, on_hit)
        self._python = inner

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        if not self._results.keeps(stage):
            return self._python.run_rows(stage, rows, results)
        began, own = perf_counter(), thread_time()
        until = began + BATCH_SECONDS
        at, worked, last = 0, 0.0, 0.0
        while at < len(rows) and (at == 0 or perf_counter() < until):
            keys, found = self._look(stage, rows, at, until)
            if keys:
                done, times = self._compute(stage, rows[at : at + len(keys)], keys, results)
                at, worked, last = at + done, worked + times.worked, times.last
                if done < len(keys) or perf_counter() > until:  # a long row is the last one
                    break
            if found is not None:
                results.append(found)
                self._hit(stage, rows[at], found)
                at, last = at + 1, 0.0
        return RowTimes(perf_counter() - began, last, max(worked, thread_time() - own))

    def _look(
        self, stage: Stage, rows: Sequence[Values], at: int, until: float
    ) -> tuple[list[bytes], Values | None]:
        """The keys of the next rows that have no result, and the result of the one after them.

        A row without a key is refused once those before it have results: it is the one blamed.
        """
        keys: list[bytes] = []
        for row in islice(rows, at, None):
            try:
                key = self._results.key(stage, row)
            except FlowosError:
                if not keys:
                    raise
                break
            found = self._results.find(stage, key, row)
            if found is not None:
                return keys, found
            keys.append(key)
            if perf_counter() > until:
                break
        return keys, None

    def _compute(
        self,
        stage: Stage,
        rows: Sequence[Values],
        keys: Sequence[bytes],
        results: list[Values | None],
    ) -> tuple[int, RowTimes]:
        """How many came to an end, and how long that took."""
        done: list[Values | None] = []
        try:
            times = self._python.run_rows(stage, rows, done)
        finally:
            for key, row in zip(keys, done):  # noqa: B905 - fewer, where time was over
                if row is not None:  # else it was lost with its worker
                    self._results.keep(stage, key, row)
                results.append(row)
        return len(done), times
