"""What a person should know of nodes that were booted for a slice: which, into what, how long."""

import time

from flowos.engine._provider import HoldEvent


class BootNotes:
    """Of the events of a provider."""

    def __init__(self) -> None:
        self.notes: tuple[str, ...] = ()
        self._began: tuple[str, float] | None = None

    def heard(self, event: HoldEvent) -> None:
        now = time.monotonic()
        if self._began is not None:
            which, since = self._began
            self.notes += (f"booted {which}: {now - since:.1f} s",)
        self._began = (event.reason, now) if event.what == "booting" else None
