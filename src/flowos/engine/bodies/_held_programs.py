"""Programs and memory that bodies keep in this process: until its last slice is freed."""

import threading
from collections.abc import Callable

_lock = threading.Lock()
_slices = 0
takers: list[Callable[[], Callable[[], None]]] = []
"""Each takes away what is kept of one kind, also programs that are busy, without waiting, and gives
what ends it. In a worker process none is called: what bodies have started there ends with it."""


def hold_programs() -> Callable[[], None]:
    """For a slice whose tasks run in this process; to be called once, when it is freed."""
    global _slices
    with _lock:
        _slices += 1
    return _let_go


def _let_go() -> None:
    global _slices
    with _lock:
        _slices -= 1
        # a slice that is opened from now on must not find them
        ends = [] if _slices else [take() for take in takers]
    for end in ends:
        end()
