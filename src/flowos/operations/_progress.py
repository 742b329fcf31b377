"""How fast something goes, and about how long the rest of it will take."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowos.engine import now

if TYPE_CHECKING:
    from flowos._native import Counter

_TELLS_SECONDS = 0.1
_LOOKS_BACK_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgress:
    """How far something is. listed: samples found so far, while they are listed.

    rate: bytes per second of late. left_seconds: None while it cannot be said.
    """

    listed: int = 0
    samples: int = 0
    done: int = 0
    bytes: int = 0
    rate: float = 0.0
    left_seconds: float | None = None


OnTransferProgress = Callable[[TransferProgress], None]


class ProgressMeter:
    """Tells of steps ten times a second at most."""

    def __init__(self, tell: OnTransferProgress, clock: Callable[[], float] = now) -> None:
        self._tell, self._clock = tell, clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def at(self, samples: int, done: int, bytes_: int) -> None:
        """So many samples are done, of so many; the last step is told in any case."""
        time = self._clock()
        if done < samples and self._seen and time - self._seen[-1][0] < _TELLS_SECONDS:
            return
        self._seen.append((time, done, bytes_))
        while len(self._seen) > 2 and time - self._seen[1][0] > _LOOKS_BACK_SECONDS:
            self._seen.popleft()
        then, done_then, bytes_then = self._seen[0]
        seconds, more = time - then, done - done_then
        self._tell(
            TransferProgress(
                samples=samples,
                done=done,
                bytes=bytes_,
                rate=(bytes_ - bytes_then) / seconds if seconds > 0 else 0.0,
                left_seconds=(samples - done) * seconds / more if more > 0 else None,
            )
        )


@contextmanager
def counted(look: Callable[[int], None]) -> Iterator["Counter"]:
    """Calls `look` with what is counted, ten times a second as long as the `with` lasts."""
    from flowos._native import Counter

    counter, ended = Counter(), threading.Event()

    def watch() -> None:
        while not ended.wait(_TELLS_SECONDS):
            look(counter.value)

    thread = threading.Thread(target=watch, name="flowos-progress", daemon=True)
    thread.start()
    try:
        yield counter
    finally:
        ended.set()
        thread.join()


def listing(tell: OnTransferProgress) -> "AbstractContextManager[Counter]":
    """Tells how many samples were found, as long as the `with` lasts."""
    return counted(lambda found: tell(TransferProgress(listed=found)))
