"""Progress of an operation: its rate, and the estimated time left."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from flowos.engine import now
from flowos.feeder import Seconds, binding
from flowos.model import OnProgress, Progress
from flowos.report import number

if TYPE_CHECKING:
    from flowos._native import Counter

INTERVAL_SECONDS = 0.1
_LOOKS_BACK_SECONDS = 10.0


class ProgressMeter:
    """Reports finished samples, at most ten times a second."""

    def __init__(
        self, doing: str, on_progress: OnProgress, clock: Callable[[], float] = now
    ) -> None:
        self._doing, self._on_progress, self._clock = doing, on_progress, clock
        self._seen: deque[tuple[float, int, int, Seconds]] = deque()

    def at(self, samples: int, done: int, bytes_: int, bound: Callable[[], Seconds] = dict) -> None:
        """Report `done` of `samples`; the last step is always reported.

        bound: for so long each stage of the work bound, so far.
        """
        time = self._clock()
        if done < samples and self._seen and time - self._seen[-1][0] < INTERVAL_SECONDS:
            return
        self._seen.append((time, done, bytes_, bound()))
        while len(self._seen) > 2 and time - self._seen[1][0] > _LOOKS_BACK_SECONDS:
            self._seen.popleft()
        then, done_then, bytes_then, bound_then = self._seen[0]
        seconds, more = time - then, done - done_then
        rate = (bytes_ - bytes_then) / seconds if seconds > 0 else 0.0
        words = [f"{done / samples if samples else 1.0:6.1%}"]
        words += [number(rate, "byte/s")] if bytes_ else []
        words += [str(binds) for binds in (binding(self._seen[-1][3], bound_then),) if binds]
        words += [number(bytes_, "byte")] if bytes_ else []  # the first that a terminal cuts off
        self._on_progress(
            Progress(
                doing=self._doing,
                done=done,
                total=samples,
                unit="sample",
                detail="  ".join(words),
                left_seconds=(samples - done) * seconds / more if more > 0 else None,
            )
        )


@contextmanager
def counted(look: Callable[[int], None]) -> Iterator["Counter"]:
    """Call `look` with the count ten times a second during the `with` block."""
    from flowos._native import Counter

    counter, ended = Counter(), threading.Event()

    def watch() -> None:
        while not ended.wait(INTERVAL_SECONDS):
            look(counter.value)

    thread = threading.Thread(target=watch, name="flowos-progress", daemon=True)
    thread.start()
    try:
        yield counter
    finally:
        ended.set()
        thread.join()


def listing(doing: str, on_progress: OnProgress) -> "AbstractContextManager[Counter]":
    """Report how many samples were found during the `with` block."""

    def look(found: int) -> None:
        says = f"{doing}: listing, {found} samples found"
        on_progress(Progress(doing=says, done=found, unit="sample"))

    return counted(look)
