"""What holds nodes of a pool: the promise of a provider, and what it answers.

- `hold` waits until it has as many nodes as were asked for. While it waits, events say why. What
  the pool can never give is refused at once, and an interrupt while it waits leaves nothing held.
- What is held stays so until `free`, or until its lease ends, which an event says. A node that is
  lost is said by an event too; the others stay.
- `resize` gives nodes back or waits for more, under the same id. Refused or interrupted, it leaves
  what is held as it was.
- `free` gives all back; twice is once, and what is not held any more is no error.
- `attach` finds what is held by its id, with the nodes that it has now.

Events come from any thread, in order, and not after `free` has returned.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from flowos.engine._node import Node
from flowos.model import Ask, Lost, NodeInfo, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldEvent:
    """What happened to what is held or waited for. node: the name of the one that is lost."""

    what: Literal["waiting", "held", "resized", "lost", "ended"]
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


class Provider(Protocol):
    """Methods may be called from any thread."""

    @property
    def pool(self) -> Pool: ...

    def nodes(self) -> tuple[NodeInfo, ...]:
        """The pool's nodes as they are now. Raises SliceRefused if it cannot be used."""
        ...

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore) -> Held:
        """Wait for the nodes. Raises SliceRefused for what cannot be had of this pool."""
        ...

    def resize(self, held: Held, nodes: int) -> Held:
        """Hold this many instead. Raises SliceRefused if they cannot be had, or it is not held."""
        ...

    def free(self, held: Held) -> None:
        """Give all nodes back."""
        ...

    def attach(self, id: str) -> Held | Lost:
        """What is held under this id, or why it is not any more."""
        ...
