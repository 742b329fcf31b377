"""A slice apart from a flow: nodes that are held, on which flows run until they are freed.

A run stays on one node, the one with the fewest of ours; the items of a `map` go to all nodes in
turn. A node that is lost gets no more, and what ran on it begins anew on another one, or ends with
WorkerLost; a lease that ends ends all with SliceFreed.
"""

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, overload

from flowos._collected import when_collected
from flowos.engine._held_map import MapPart, dealt, in_turns, is_lost
from flowos.engine._node import Node
from flowos.engine._open_slice import SliceOptions, open_slice
from flowos.engine._provider import Held, HoldEvent, OnHoldEvent, Provider, ignore
from flowos.engine.flow._freed import Freed
from flowos.engine.flow._slice import OnError, Slice, check_on_error
from flowos.model import (
    Ask,
    Flow,
    FlowosError,
    RunResult,
    SliceFreed,
    WiringError,
    WorkerLost,
    brief_repr,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

_MAX_LOST = 3
"""A run that loses so many nodes may be what ends them."""


class HeldSlice(Freed):
    """Nodes of a pool. Made by `fo.slice(pool=...)`; free it, or use it in a `with`."""

    def __init__(
        self,
        provider: Provider,
        ask: Ask,
        options: SliceOptions,
        on_event: OnHoldEvent = ignore,
        *,
        requeue: bool = True,
    ) -> None:
        """requeue: runs that were lost with their node begin anew on another one."""
        self._provider = provider
        self._requeue = requeue
        self._options = options
        self._on_event = on_event
        self._lock = threading.RLock()
        self._slices: dict[str, dict[Flow, Slice]] = {}
        self._busy: Counter[str] = Counter()
        self._over: Callable[[], FlowosError] | None = None
        self._lost: list[str] = []
        self._held = provider.hold(ask, _weakly(self))
        self._ending = when_collected(self, partial(provider.free, self._held))

    @property
    def held(self) -> Held:
        """What is held now."""
        with self._lock:
            return self._held

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that are held now."""
        return tuple(node.name for node in self._here())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of the flows that are open. See `Slice.notes`."""
        with self._lock:
            slices = [each for flows in self._slices.values() for each in flows.values()]
        return tuple(dict.fromkeys(note for each in slices for note in each.notes))

    def run(self, flow: Flow, /, *values: object, **named: object) -> list[object]:
        """Run a flow once, on one of the nodes. Raises what `Slice.run` does.

        A flow is made ready on a node when it first runs there, and stays so until `free`. A run
        that is lost with its node begins anew on another one, from the first task on.
        """
        for lost in count(1):
            node, on = self._begun(flow)
            try:
                return on.run(*values, **named)
            except WorkerLost:
                if not self._goes_on(node, lost):
                    raise
            finally:
                self._over_at(node)
        raise AssertionError

    def _over_at(self, node: str) -> None:
        with self._lock:
            self._busy[node] -= 1

    def submit(self, flow: Flow, /, *values: object, **named: object) -> "Future[list[object]]":
        """Begin a run on one of the nodes and do not wait. See `Slice.submit`.

        It ends with WorkerLost if its node is lost.
        """
        node, on = self._begun(flow)
        try:
            run = on.submit(*values, **named)
        except BaseException:
            self._over_at(node)
            raise
        run.add_done_callback(lambda _: self._over_at(node))
        return run

    async def arun(self, flow: Flow, /, *values: object, **named: object) -> list[object]:
        """`run` for asyncio. See `Slice.arun`."""
        from flowos.engine.flow._submitted import awaited

        return await awaited(self.submit(flow, *values, **named))

    @overload
    def map(
        self,
        flow: Flow,
        values: Iterable[object],
        *,
        ahead: int | None = ...,
        on_error: Literal["raise"] = ...,
    ) -> Iterator[list[object]]: ...
    @overload
    def map(
        self,
        flow: Flow,
        values: Iterable[object],
        *,
        ahead: int | None = ...,
        on_error: Literal["return"],
    ) -> Iterator[RunResult]: ...
    def map(
        self,
        flow: Flow,
        values: Iterable[object],
        *,
        ahead: int | None = None,
        on_error: OnError = "raise",
    ) -> Iterator[list[object]] | Iterator[RunResult]:
        """Results of one run per item, in order. See `Slice.map`; ahead is for each node.

        Items without a result when their node is lost are run again on another one.
        """
        check_on_error(on_error)
        self.opened(flow)
        nodes = self._here()
        options: dict[str, Any] = {"ahead": ahead, "step": len(nodes), "on_error": on_error}
        parts = zip(nodes, dealt(values, len(nodes)), count(), strict=False)
        return in_turns([self._surviving(flow, *part, **options) for part in parts])

    def _surviving(
        self, flow: Flow, node: Node, part: MapPart, first: int, **options: Any
    ) -> Iterator[Any]:
        """The results of some items of a map, in order, whatever becomes of their node.

        Before them comes one of None, once runs have begun.
        """
        for lost in count(1):
            run = self._slice(node, flow).map_part(part, first=first, **options)
            try:
                run.begin()
                if lost == 1:
                    yield None
                for result in run.results():
                    if is_lost(result) and self._goes_on(node.name, lost):
                        break
                    part.answered()
                    first += options["step"]
                    yield result
                else:
                    return
            except WorkerLost:
                if not self._goes_on(node.name, lost):
                    raise
            node = self._least_busy()

    def _goes_on(self, node: str, lost: int) -> bool:
        """Whether what was lost there begins anew on another node."""
        with self._lock:
            left = {each.name for each in self._held.nodes}.difference(self._lost)
            may = self._requeue and lost <= _MAX_LOST and self._over is None
            return may and node in self._lost and bool(left)

    def opened(self, flow: Flow) -> list[Slice]:
        """The flow ready to be run on each node. Raises SliceRefused if one cannot."""
        return [self._slice(node, flow) for node in self._here()]

    def resize(self, nodes: int) -> None:
        """Hold this many nodes instead. Runs on a node that is given back raise SliceFreed."""
        with self._lock:
            before = self._held
        held = self._provider.resize(before, Ask(nodes=nodes).nodes)
        with self._lock:
            left = {node.name for node in held.nodes} - set(self._lost)
            gone = [node.name for node in before.nodes if node.name not in left]
            self._held = held
        for name in gone:
            self._close(name, _given_back)

    def free(self) -> None:
        """Give all back. Twice is once."""
        self._end(_freed)
        if self._ending.detach():
            self._provider.free(self._held)

    def __repr__(self) -> str:
        state = "over" if self._over else f"nodes: {', '.join(self.nodes)}"
        return f"<slice of pool {self._held.pool!r}, {state}>"

    def _here(self) -> tuple[Node, ...]:
        """The nodes that are left. Raises why there are none."""
        with self._lock:
            if self._over is not None:
                raise self._over()
            nodes = tuple(node for node in self._held.nodes if node.name not in self._lost)
        if not nodes:
            raise WorkerLost(f"slice {self._held.id}: all its nodes are lost")
        return nodes

    def _begun(self, flow: Flow) -> tuple[str, Slice]:
        if not isinstance(flow, Flow):
            raise WiringError(
                f"run: the first argument is a flow, not {brief_repr(flow)}: make one with "
                "fo.flow_output(...)"
            )
        with self._lock:
            node = self._least_busy()
            on = self._slice(node, flow)
            self._busy[node.name] += 1
        return node.name, on

    def _least_busy(self) -> Node:
        with self._lock:
            return min(self._here(), key=lambda each: self._busy[each.name])

    def _slice(self, node: Node, flow: Flow) -> Slice:
        with self._lock:
            slices = self._slices.setdefault(node.name, {})
            if flow not in slices:
                slices[flow] = open_slice(flow, node, self._options)
            return slices[flow]

    def happened(self, event: HoldEvent) -> None:
        """What the provider says, by any thread."""
        if event.what == "lost":
            with self._lock:
                self._lost.append(event.node)
        try:
            self._on_event(event)
        finally:  # what runs may take a while to end
            if event.what == "lost":
                self._close(event.node, partial(_lost, event.node, event.reason))
            elif event.what == "ended":
                self._end(partial(_ended, event.reason))

    def _end(self, error: Callable[[], FlowosError]) -> None:
        with self._lock:
            self._over = self._over or error
            names = tuple(self._slices)
        for name in names:
            self._close(name, error)

    def _close(self, node: str, error: Callable[[], FlowosError]) -> None:
        """End what is open on a node; not under the lock, as runs there may take a while to end."""
        with self._lock:
            slices = self._slices.pop(node, {})
        for each in slices.values():
            each.end(error)


class FlowSlice(Freed):
    """A flow on held nodes. Made by `fo.slice(flow, pool=...)`; free it, or use it in a `with`."""

    def __init__(self, held: HeldSlice, flow: Flow) -> None:
        self.flow = flow
        self._held = held
        try:
            self._slices = held.opened(flow)
        except BaseException:
            held.free()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of its slices. See `Slice.notes`."""
        return tuple(dict.fromkeys(note for each in self._slices for note in each.notes))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that are held now."""
        return self._held.nodes

    def run(self, /, *values: object, **named: object) -> list[object]:
        """Run the flow once, on one of the nodes. See `Slice.run`."""
        return self._held.run(self.flow, *values, **named)

    def submit(self, /, *values: object, **named: object) -> "Future[list[object]]":
        """Begin a run on one of the nodes and do not wait. See `Slice.submit`."""
        return self._held.submit(self.flow, *values, **named)

    async def arun(self, /, *values: object, **named: object) -> list[object]:
        """`run` for asyncio. See `Slice.arun`."""
        return await self._held.arun(self.flow, *values, **named)

    @overload
    def map(
        self, values: Iterable[object], *, ahead: int | None = ..., on_error: Literal["raise"] = ...
    ) -> Iterator[list[object]]: ...
    @overload
    def map(
        self, values: Iterable[object], *, ahead: int | None = ..., on_error: Literal["return"]
    ) -> Iterator[RunResult]: ...
    def map(
        self,
        values: Iterable[object],
        *,
        ahead: int | None = None,
        on_error: OnError = "raise",
    ) -> Iterator[list[object]] | Iterator[RunResult]:
        """Results of one run per item, in order, over all nodes. See `Slice.map`."""
        return self._held.map(self.flow, values, ahead=ahead, on_error=on_error)

    def resize(self, nodes: int) -> None:
        """Hold this many nodes instead. See `HeldSlice.resize`."""
        self._held.resize(nodes)
        self._slices = self._held.opened(self.flow)

    def free(self) -> None:
        """Give all back. Twice is once."""
        self._held.free()

    def __repr__(self) -> str:
        return f"<slice of {self.flow!r} on {self._held!r}>"


def _weakly(to: HeldSlice) -> OnHoldEvent:
    """A callback that refers to the slice weakly: the provider does not keep it alive."""
    known = weakref.ref(to)

    def tell(event: HoldEvent) -> None:
        alive = known()
        if alive is not None:
            alive.happened(event)

    return tell


def _freed() -> SliceFreed:
    return SliceFreed("the slice was freed: make another with fo.slice(...)")


def _given_back() -> SliceFreed:
    return SliceFreed("the node that this ran on was given back by resize")


def _ended(why: str) -> SliceFreed:
    return SliceFreed(f"the slice's lease ended {why}: ask for more seconds, or free it sooner")


def _lost(node: str, why: str) -> WorkerLost:
    return WorkerLost(f"node {node} is lost: {why}")
