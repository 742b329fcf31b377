"""Programs that bodies have started in this process: they end when its last slice is freed."""

import threading
from collections.abc import Callable

_lock = threading.Lock()
_slices = 0
takers: list[Callable[[], Callable[[], None]]] = []
"""Each takes away the programs of one kind, also those that are busy, without waiting, and gives
what ends them. In a worker process none is called: what bodies have started there ends with it."""


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
