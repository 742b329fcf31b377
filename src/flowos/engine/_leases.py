"""What a provider of this process holds: ids, leases that end, nodes that are lost."""

import secrets
import threading
import time
from collections.abc import Callable, Collection

from flowos._dataclasses import dataclass, field, replace
from flowos.engine._node import Node
from flowos.engine._provider import Held, HoldEvent, OnHoldEvent
from flowos.model import Ask, Lost, Pool, SliceRefused

_REMEMBERED = 1000
"""Of so many that are over it is known why."""
_GIVEN_BACK_SECONDS = 60.0


def new_slice_id(pool: Pool) -> str:
    """Of a slice that no other has: programs of all machines that hold nodes of it make some."""
    return f"{pool.name}-{secrets.token_hex(4)}"


@dataclass(slots=True)
class _Lease:
    held: Held
    on_event: OnHoldEvent
    timers: list[threading.Timer] = field(default_factory=list)
    reporting: threading.RLock = field(default_factory=threading.RLock)
    given_back: threading.Event = field(default_factory=threading.Event)
    ends_in: int | None = None  # a thread


class Leases:
    """Of one pool. give_back: gets the nodes of a lease that is over, under no lock."""

    def __init__(self, pool: Pool, give_back: Callable[[Collection[Node]], None]) -> None:
        self._pool = pool
        self._give_back = give_back
        self._lock = threading.Lock()
        self._leases: dict[str, _Lease] = {}
        self._over: dict[str, str] = {}
        self._ending: dict[str, _Lease] = {}

    def begin(self, nodes: tuple[Node, ...], ask: Ask, on_event: OnHoldEvent) -> Held:
        """Hold these nodes; the lease ends by itself after what was asked for, or is allowed."""
        id = ask.id or new_slice_id(self._pool)
        seconds = self._pool.seconds_of(ask)
        until = None if seconds is None else time.time() + seconds
        held = Held(id=id, pool=self._pool.name, nodes=nodes, until=until)
        with self._lock:
            lease = self._leases[id] = _Lease(held, on_event)
        try:
            self._report(lease, HoldEvent(what="held"))
        except BaseException:
            self.free(held)
            raise
        if seconds is not None:
            self.later(held, seconds, lambda: self.end(held, f"after {seconds:g} s"))
        return held

    def later(self, held: Held, seconds: float, act: Callable[[], None]) -> None:
        """Do something to what is held, unless it is freed before."""
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        with self._lock:
            lease = self._leases.get(held.id)
            if lease is not None:
                lease.timers.append(timer)
                timer.start()

    def now(self, held: Held) -> Held:
        """As it is now. Raises SliceRefused if it is not held any more."""
        with self._lock:
            return self._lease(held).held

    def find(self, id: str) -> Held | Lost:
        with self._lock:
            lease = self._leases.get(id)
            return Lost(self._why_over(id)) if lease is None else lease.held

    def add(self, held: Held, more: tuple[Node, ...]) -> Held:
        """Also hold these, under the same id and until the same end."""
        try:
            with self._lock:
                lease = self._lease(held)
                lease.held = replace(lease.held, nodes=(*lease.held.nodes, *more))
        except SliceRefused:  # it ended while they were waited for
            self._give_back(more)
            raise
        self._report(lease, HoldEvent(what="resized"))
        return lease.held

    def give_back(self, held: Held, names: Collection[str]) -> Held:
        """See `Provider.give_back`."""
        with self._lock:
            lease = self._lease(held)
            before = lease.held.nodes
            left = tuple(node for node in before if node.name not in names)
            if not left:
                none = "none of its nodes would be left; free it instead"
                raise SliceRefused(f"slice {held.id}: {none}")
            lease.held = replace(lease.held, nodes=left)
        self._report(lease, HoldEvent(what="resized"))
        self._give_back([node for node in before if node not in left])
        return lease.held

    def lose(self, held: Held, name: str, reason: str) -> None:
        """One of its nodes is gone, and does not come back."""
        with self._lock:
            lease = self._leases.get(held.id)
            if lease is None or name not in [node.name for node in lease.held.nodes]:
                return
            left = tuple(node for node in lease.held.nodes if node.name != name)
            lease.held = replace(lease.held, nodes=left)
        self._report(lease, HoldEvent(what="lost", node=name, reason=reason))

    def end(self, held: Held, why: str) -> None:
        """Its lease is over. why: "after 3 s", or what ended it before that."""
        ended = "its lease ended" if why.startswith("after ") else "it has ended:"
        self._remove(held, f"{ended} {why}", HoldEvent(what="ended", reason=why))

    def free(self, held: Held) -> None:
        self._remove(held, "it was freed", None)

    def _lease(self, held: Held) -> _Lease:
        """Under the lock. Raises SliceRefused if it is not held any more."""
        if held.id not in self._leases:
            raise SliceRefused(f"slice {held.id}: {self._why_over(held.id)}")
        return self._leases[held.id]

    def _why_over(self, id: str) -> str:
        return self._over.get(id, f"pool {self._pool.name} holds nothing of this name here")

    def _remove(self, held: Held, why: str, event: HoldEvent | None) -> None:
        with self._lock:
            lease = self._leases.pop(held.id, None)
            if lease is not None:
                lease.ends_in = threading.get_ident()
                self._ending[held.id] = lease
                self._over[held.id] = why
                if len(self._over) > _REMEMBERED:
                    del self._over[next(iter(self._over))]
            ending = self._ending.get(held.id)
        if lease is not None:
            self._give_all_back(lease, event)
        elif ending is not None and ending.ends_in != threading.get_ident():
            # a program may be over as soon as this returns, and the other thread with it
            ending.given_back.wait(_GIVEN_BACK_SECONDS)

    def _give_all_back(self, lease: _Lease, event: HoldEvent | None) -> None:
        for timer in lease.timers:
            timer.cancel()
        try:
            if event is not None:
                self._report(lease, event)
        finally:
            try:
                with lease.reporting:  # after an event that another thread is still delivering
                    self._give_back(lease.held.nodes)
            finally:
                lease.given_back.set()
                with self._lock:
                    del self._ending[lease.held.id]

    def _report(self, lease: _Lease, event: HoldEvent) -> None:
        with lease.reporting:
            lease.on_event(event)
