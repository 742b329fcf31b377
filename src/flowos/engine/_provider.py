"""What holds nodes of a pool: the promise of a provider, and what it answers.

- `hold` waits until it has as many nodes as were asked for. While it waits, events say why. What
  the pool can never give is refused at once, and an interrupt while it waits leaves nothing held.
- What is held stays so until `free`, or until its lease ends, which an event says. A node that is
  lost is said by an event too; the others stay.
- `resize` gives the last nodes back or waits for more, under the same id, and `give_back` gives
  back those that it names. Refused, interrupted or cancelled, they leave what is held as it was.
- A `CancelToken` ends a wait from another thread: nothing is held of it, and nothing waits on.
- `free` gives all back; twice is once, and what is not held any more is no error.
- `attach` finds what is held by its id, with the nodes that it has now; what has a lease, also if
  another program held it. `leave` leaves it to its lease.

Events come from any thread, in order, and not after `free` has returned.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from flowos._dataclasses import dataclass
from flowos.engine._node import Node
from flowos.model import Ask, Cancelled, Lost, NodeInfo, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldEvent:
    """What happened to what is held or waited for. node: the name of the one that is lost.

    booting: it waits no more, and nodes are booted: which, and into what, its reason says.
    """

    what: Literal["waiting", "booting", "held", "resized", "lost", "ended", "stopped"]
    reason: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nodes of a pool that are held. until: the end of the lease, in seconds since 1970."""

    id: str
    pool: str
    nodes: tuple[Node, ...]
    until: float | None = None
    notes: tuple[str, ...] = ()


OnHoldEvent = Callable[[HoldEvent], None]


def ignore(event: HoldEvent) -> None:
    """Default callback: does nothing."""


class CancelToken:
    """Ends a wait for nodes: it then raises Cancelled."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()
        self._conditions: list[threading.Condition] = []

    def cancel(self) -> None:
        """By any thread; twice is once."""
        self._cancelled.set()
        for condition in tuple(self._conditions):
            with condition:
                condition.notify_all()

    def check(self, seconds: float = 0.0) -> None:
        """Wait so long. Raises Cancelled if it is cancelled until then."""
        if self._cancelled.wait(seconds):
            raise Cancelled("the wait for nodes was cancelled")

    @contextmanager
    def wakes(self, condition: threading.Condition) -> Iterator[None]:
        """A thread that waits for the condition is notified, and `check` then raises."""
        self._conditions.append(condition)
        try:
            yield
        finally:
            self._conditions.remove(condition)


NEVER = CancelToken()
"""Of a wait that is never cancelled."""


class Provider(Protocol):
    """Methods may be called from any thread."""

    @property
    def pool(self) -> Pool: ...

    def nodes(self) -> tuple[NodeInfo, ...]:
        """The pool's nodes as they are now. Raises SliceRefused if it cannot be used."""
        ...

    def check(self, ask: Ask) -> None:
        """Raises SliceRefused for what can never be had of this pool."""
        ...

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore, cancel: CancelToken = NEVER) -> Held:
        """Wait for the nodes. Raises SliceRefused for what cannot be had of this pool."""
        ...

    def resize(
        self, held: Held, nodes: int, cancel: CancelToken = NEVER, on_event: OnHoldEvent = ignore
    ) -> Held:
        """Hold this many instead. Raises SliceRefused if they cannot be had, or it is not held.

        on_event: gets why it waits.
        """
        ...

    def give_back(self, held: Held, names: Collection[str]) -> Held:
        """Hold all but the nodes of these names. Raises SliceRefused if none would be left."""
        ...

    def free(self, held: Held) -> None:
        """Give all nodes back."""
        ...

    def leave(self, held: Held) -> None:
        """Stay held until the lease ends; what has none is freed."""
        ...

    def attach(self, id: str, on_event: OnHoldEvent = ignore) -> Held | Lost:
        """What is held under this id, or why it is not any more. on_event: if it was not ours."""
        ...
