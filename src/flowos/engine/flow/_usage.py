"""What a slice was used for: counted as it is used, read by whoever keeps a record."""

import itertools
import threading
import time
from collections.abc import Callable

from flowos.model import Cancelled, SliceFreed

MAX_FAILURES = 5
_MAX_CHARS = 300


class SliceUsage:
    """Of one slice. log: the file with its tasks, or "". `begun` is called for each run, `hit` for
    each result that was found: steps of counters, without a lock. `run_failed` is called for each
    run that ends with an error. failed: how many did; failures: what is said of the last ones."""

    __slots__ = (
        "_counter",
        "_freed",
        "_hits",
        "_lock",
        "_mapped",
        "_opened",
        "begun",
        "env",
        "failed",
        "failures",
        "flow",
        "hit",
        "log",
        "node",
    )

    def __init__(self, flow: str, node: str, env: str, log: str = "") -> None:
        self.flow, self.node, self.env, self.log = flow, node, env, log
        self._counter = itertools.count()
        self._hits = itertools.count()
        self.begun, self.hit = self._counter.__next__, self._hits.__next__
        self._lock = threading.Lock()
        self._mapped = 0
        self.failed = 0
        self.failures: tuple[str, ...] = ()
        self._opened = time.monotonic()
        self._freed: float | None = None

    def mapped(self, items: int) -> None:
        """So many runs of a `map` begin."""
        with self._lock:
            self._mapped += items

    def run_failed(self, error: BaseException) -> None:
        """A run ended with this error. One that a person ended did not fail."""
        if isinstance(error, (Cancelled, SliceFreed)):
            return
        said = " ".join(str(error).split())
        if len(said) > _MAX_CHARS:  # its end says where
            said = f"{said[: _MAX_CHARS // 2]} ... {said[-_MAX_CHARS // 2 :]}"
        with self._lock:
            self.failed += 1
            self.failures = (*self.failures, said)[-MAX_FAILURES:]

    def end(self) -> None:
        """The slice is freed."""
        self._freed = time.monotonic()

    @property
    def over(self) -> bool:
        return self._freed is not None

    @property
    def runs(self) -> int:
        """So many have begun."""
        return _steps(self._counter) + self._mapped

    @property
    def hits(self) -> int:
        """So many results of tasks were found instead of computed."""
        return _steps(self._hits)

    @property
    def held_seconds(self) -> float:
        until = time.monotonic() if self._freed is None else self._freed
        return until - self._opened


def _steps(counter: "itertools.count[int]") -> int:
    return int(repr(counter)[len("count(") : -1])


OnUsage = Callable[[SliceUsage], None]
