"""Nodes of a pool that come and go for one slice, and none of which may be held at times."""

import threading
import time
from collections.abc import Callable, Collection

from flowos._dataclasses import replace
from flowos.engine._provider import CancelToken, Held, HoldEvent, OnHoldEvent, Provider
from flowos.model import Ask, Cancelled, SliceFreed


class ElasticHold:
    """What is held is a new lease each time that it was none before.

    ask: of a node; its `seconds` are those of all leases together, from the first one on.
    max_nodes: at a time. on_free: called when it is freed. said: by the pool, why the nodes do not
    come that are waited for.
    Methods may be called from any thread, and one at a time has its way.
    """

    def __init__(
        self,
        provider: Provider,
        ask: Ask,
        max_nodes: int,
        on_event: OnHoldEvent,
        on_free: Callable[[], None],
    ) -> None:
        self._provider, self._ask, self._on_event = provider, ask, on_event
        self._max_nodes = max_nodes
        self._on_free = on_free
        self._changing = threading.Lock()
        self._cancel = CancelToken()
        self._freed = False
        self._until: float | None = None
        self._id = ""
        self.said = ""

    def begin_more(
        self, count: int, cancel: CancelToken, came: Callable[[Held | Exception], None]
    ) -> None:
        """`more` in a thread of its own, which gives what it returns or raises."""

        def wait() -> None:
            try:
                got: Held | Exception = self.more(count, cancel)
            except Exception as error:
                got = error
            came(got)

        threading.Thread(target=wait, name="flowos-hold", daemon=True).start()

    def more(self, count: int, cancel: CancelToken) -> Held:
        """Wait for so many in addition.

        Raises SliceRefused if the pool refuses them, Cancelled if it was freed or cancelled
        meanwhile, and SliceFreed if what is held ended.
        """
        with self._changing:
            self._cancel, self.said = cancel, ""
            if self._freed:
                raise Cancelled("the slice was freed")
            now = self._now()
            if now is not None and now.nodes:
                nodes = min(len(now.nodes) + count, self._max_nodes)
                return self._provider.resize(now, nodes, cancel, self._hear)
            if now is not None:  # its last node was lost
                self._provider.free(now)
            held = self._provider.hold(self._next(count), self._report, cancel)
            self._id = held.id
            if self._until is None and self._ask.seconds is not None:
                self._until = time.monotonic() + self._ask.seconds
            return held

    def give_back(self, names: Collection[str]) -> None:
        """Those of them that are held; all, if none is left. Raises SliceRefused if it fails."""
        with self._changing:
            now = self._now()
            if now is None:
                return
            if all(node.name in names for node in now.nodes):
                self._provider.free(now)
            else:
                self._provider.give_back(now, names)

    def free(self) -> None:
        """Give all back, and wait for no more. Twice is once."""
        self._freed = True
        self._on_free()
        self._cancel.cancel()
        with self._changing:
            now = self._now()
            if now is not None:
                self._provider.free(now)

    def _hear(self, event: HoldEvent) -> None:
        if event.what in ("waiting", "booting"):
            self.said = event.reason

    def _report(self, event: HoldEvent) -> None:
        self._hear(event)
        self._on_event(event)

    def _now(self) -> Held | None:
        found = self._provider.attach(self._id) if self._id else None
        return found if isinstance(found, Held) else None

    def _next(self, count: int) -> Ask:
        if self._until is None:
            return replace(self._ask, nodes=count)
        left = self._until - time.monotonic()
        if left <= 0:
            raise SliceFreed(f"the slice's lease ended after {self._ask.seconds:g} s")
        return replace(self._ask, nodes=count, seconds=left)
