"""Nodes that killed programs have left held: a program that waits for nodes frees them."""

import threading

from flowos.engine import HoldEvent, OnHoldEvent
from flowos.operations.slices import free_left


def freeing_left(on_event: OnHoldEvent) -> OnHoldEvent:
    """The same; from the first wait for nodes on, a thread frees those that are left."""
    begun = threading.Event()

    def heard(event: HoldEvent) -> None:
        on_event(event)
        if event.what == "waiting" and not begun.is_set():
            begun.set()
            threading.Thread(target=free_left, name="flowos-free-left", daemon=True).start()

    return heard
