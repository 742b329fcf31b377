"""What one slice holds of the node: by its own ledger first, then by that of all slices.

A task that runs a slice itself waits for it meanwhile: what it holds is lent, and taken back
afterwards as far as it is still there.
"""

import threading
import time
import weakref
from collections.abc import Container, Sequence

from flowos.engine._ledger import Asker, Grant, ResourceLedger
from flowos.engine.flow._runs import ExecutionSlot, SlotThread
from flowos.model import DeviceNumbers, Needs

Holding = int | tuple[Grant, Grant]
"""One core of the node without more, or what was granted by the slice's ledger and the node's."""

ONE = Needs()
_LOOK_SECONDS = 0.01
progress_callers: set[int] = set()
"""Threads in which a measurement, which has the node for itself, calls a function of the person."""


class CoreShare:
    """The places of one slice, and what they may hold. `plain`: all tasks need one core, no more.

    own: what the slice may use at most. As many plain tasks as it has places are always within it.
    """

    def __init__(
        self,
        places: Sequence[ExecutionSlot],
        own: ResourceLedger,
        node: ResourceLedger,
        *,
        plain: bool,
    ) -> None:
        self.places = places
        self.node = node
        self.own = own
        self._plain = plain
        with _changing:
            _shares.add(self)

    def acquire(self, needs: Needs, asker: Asker, *, wait: bool = True) -> Holding | None:
        if self._plain and not self.node.line:
            try:
                return self.node.idle.pop()
            except IndexError:
                pass
        own = self.own.acquire(needs, asker, wait=wait)
        if own is None:
            return None
        grant = self.node.acquire(needs, asker, wait=wait)
        if grant is None:
            self.own.release(own)
            return None
        return own, grant

    def count_in(self, needs: Needs) -> Holding:
        """Of a task that runs without what it needs."""
        return self.own.count_in(needs), self.node.count_in(needs)

    def release(self, place: ExecutionSlot) -> None:
        """What the place holds; nothing where it was lent."""
        held, place.held = place.held, None
        self.give(held)

    def give(self, held: Holding | None) -> None:
        if isinstance(held, int):
            self.node.idle.append(held)
        elif held is not None:
            own, grant = held
            self.own.release(own)
            self.node.release(grant)

    def withdraw(self, asker: Asker, still: Container[Needs] = ()) -> bool:
        """Whether something of the node was waited for."""
        self.own.withdraw(asker, still)
        return self.node.withdraw(asker, still)


def cores_of(place: ExecutionSlot) -> tuple[int, ...]:
    """The numbers of the cores that the place holds."""
    held: Holding | None = place.held
    if isinstance(held, int):
        return (held,)
    return () if held is None else held[1].cores


def needs_held(place: ExecutionSlot, asked: Needs) -> Needs:
    """Which of what was asked for the place holds."""
    held: Holding | None = place.held
    return asked if held is None or isinstance(held, int) else held[1].needs


def devices_of(place: ExecutionSlot) -> DeviceNumbers:
    """Which devices the place holds."""
    held: Holding | None = place.held
    return () if held is None or isinstance(held, int) else held[1].devices


def lend(worker: SlotThread) -> bool:
    """Release what the tasks hold that wait for this worker's run; whether there are any."""
    with _changing:
        shares = tuple(_shares)
    found = False
    for share in shares:
        for place in share.places:
            if place.by == worker.thread and place is not worker.place and place.held is not None:
                needs = ONE if isinstance(place.held, int) else place.held[1].needs
                share.release(place)
                worker.lent.append((share, place, needs))
                worker.settled = found = True
    return found


def is_at_a_place(thread: int) -> bool:
    """Whether a task runs in this thread."""
    with _changing:
        shares = tuple(_shares)
    return any(place.by == thread for share in shares for place in share.places)


def wake_askers_of_lent(worker: SlotThread, released_by: Asker) -> None:
    """Wake the askers that wait for what was lent, maybe on other nodes. Not under a lock."""
    for share, _, _ in worker.lent:
        if share.node.line:
            share.node.wake_askers(released_by)


def take_back(worker: SlotThread, asker: Asker) -> None:
    """What is still there of what was lent; without the rest its tasks go on all the same, once
    nothing has the node for itself."""
    while worker.lent:
        share, place, needs = worker.lent.pop()
        while True:
            is_for_one = share.node.is_for_one()
            place.held = share.acquire(needs, asker, wait=False)
            if place.held is not None or not (is_for_one or share.node.is_for_one()):
                break
            time.sleep(_LOOK_SECONDS)
        if place.held is None:
            place.held = share.count_in(needs)


_changing = threading.Lock()
_shares: "weakref.WeakSet[CoreShare]" = weakref.WeakSet()
