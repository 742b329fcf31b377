"""What a growing slice knows of its nodes: since when each is idle, and which failed."""

import threading
import time
import weakref
from collections import Counter
from typing import Protocol

from flowos.engine._node import Node
from flowos.plan import MAX_FAILURES


class GrowthFailures:
    """Nodes that were refused, or lost before they had done anything, in a row.

    stopped: why the slice grows no more, or "". last: why the last one was none. Not safe for
    threads.
    """

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._at = 0.0
        self._proven: set[Node] = set()
        self.count = 0
        self.last = self.stopped = ""

    @property
    def seconds(self) -> float:
        """Since the last one."""
        return time.monotonic() - self._at

    def add(self, why: str) -> bool:
        """Returns whether it is the one that stops growth."""
        self.count, self.last = self.count + 1, why
        self._at = time.monotonic()
        if self.count < MAX_FAILURES or self.stopped:
            return False
        self.stopped = (
            f"pool {self._pool}: the slice stopped growing after {MAX_FAILURES} failures in a row, "
            f"the last one: {why}; its resize(NODES) tries again"
        )
        return True

    def forget(self) -> None:
        """It grows again."""
        self.count, self.stopped = 0, ""

    def works(self, node: Node) -> None:
        """A node that has done something: the end of the row, if it came in it."""
        if node not in self._proven:
            self._proven.add(node)
            self.count = 0

    def is_proven(self, node: Node) -> bool:
        return node in self._proven

    def left(self, node: Node) -> None:
        """It was given back; it may come again."""
        self._proven.discard(node)


class IdleTimes:
    """done: counts what each node has done. Not safe for threads, but for `done`."""

    def __init__(self) -> None:
        self.done: Counter[Node] = Counter()
        self._worked: dict[Node, tuple[float, int]] = {}

    def seconds(self, node: Node, now: float, *, works: bool) -> float:
        """Since the node worked, or came."""
        since, before = self._worked.get(node, (now, 0))
        if works or before != self.done[node]:
            since = now
        self._worked[node] = since, self.done[node]
        return now - since

    def left(self, node: Node) -> None:
        """It was given back; it may come again."""
        self._worked.pop(node, None)
        self.done.pop(node, None)


class Looking(Protocol):
    """A slice that looks at what runs and waits."""

    @property
    def is_over(self) -> bool: ...

    def look(self) -> float | None:
        """Do what is to be done now. Returns when to look again, None if nothing is going on."""
        ...


def look_after(known: "weakref.ref[Looking]", wake: threading.Event) -> None:
    """The thread of a slice, which does not keep it: until it is over, or was collected."""
    while (slice_ := known()) is not None and not slice_.is_over:
        wake.clear()
        seconds = slice_.look()
        del slice_
        wake.wait(seconds)
