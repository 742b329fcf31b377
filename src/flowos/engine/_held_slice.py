"""A slice apart from a flow: nodes that are held, on which flows run until they are freed.

A run stays on one node, the one with the fewest of ours; the items of a `map` go to nodes as they
have room. A node that is lost gets no more, and what ran on it begins anew on another one, or ends
with WorkerLost; a lease that ends ends all with SliceFreed.
"""

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from flowos._collected import when_collected
from flowos._dataclasses import replace
from flowos.engine._boot_notes import BootNotes
from flowos.engine._held_ends import (
    freed,
    freed_for,
    given_back,
    lease_ended,
    left_to_lease,
    node_lost,
    weakly,
)
from flowos.engine._held_map import HeldMap
from flowos.engine._held_runs import MAX_LOST, HeldRuns, flow_of
from flowos.engine._hold_end import HoldEnd
from flowos.engine._live_maps import LiveMaps
from flowos.engine._node import Node
from flowos.engine._open_slices import OpenSlices
from flowos.engine._options import Flowing, SliceOptions
from flowos.engine._provider import Held, HoldEvent, OnHoldEvent, Provider, ignore
from flowos.engine._waiting_tasks import Queue, watchable_queue
from flowos.engine._warm_nodes import WarmNodes
from flowos.engine.flow._pace import known_length
from flowos.engine.flow._slice import OnError, Slice, check_map
from flowos.engine.flow._watched_slice import counted
from flowos.engine.results._notes import summed_notes
from flowos.model import Ask, Flow, FlowosError, Port, RunResult, SliceRefused, WorkerLost
from flowos.plan import map_first, topology_notes

if TYPE_CHECKING:
    from flowos.engine.guests._guest import Guest


class HeldSlice(HeldRuns):
    """Nodes of a pool. Made by `fo.slice(pool=...)`; free it, or use it in a `with`.

    >>> flow = fo.flow_output(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64))))
    >>> with fo.slice(pool="local") as s:
    ...     s.run(flow, np.array([3, 1, 2]))
    ...     len(list(s.map(flow, [np.array([2, 1]), np.array([4, 3])])))
    [array([1, 2, 3])]
    2
    """

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
        self._hold_end = HoldEnd()
        self._options = replace(options, hold_end=self._hold_end)
        self._on_event = on_event
        self._lock = threading.RLock()
        self._busy, self._flows = Counter[Node](), dict[tuple[Port, ...], Flow]()
        self._warm = WarmNodes(in_image=options.env.image is not None)
        self._slices = OpenSlices(self._warm)
        self._over: Callable[[], FlowosError] | None = None
        self._lost: set[Node] = set()
        self._lost_early: set[str] = set()
        self._notes: Counter[str] = Counter()
        self._boots = BootNotes()
        self._maps = LiveMaps()
        self._guests: weakref.WeakSet[Guest] = weakref.WeakSet()
        self._has_lease, self._topology = ask.lease_seconds is not None, ask.topology
        self._held = Held(id="", pool=provider.pool.name, nodes=())
        self._ending = when_collected(self, self._begin(ask))
        watchable_queue(self)

    def _begin(self, ask: Ask) -> Callable[[], None]:
        """Hold what is asked for. Returns how it ends when this is collected."""
        held = self._provider.hold(ask, weakly(self.happened))
        self._adopt(held)
        end = self._provider.leave if self._has_lease else self._provider.free
        return partial(end, held)

    def _adopt(self, held: Held) -> None:
        """Hold these from now on, but for those that were lost meanwhile."""
        with self._lock:
            here = (n for n in held.nodes if n.name not in self._lost_early and n not in self._lost)
            self._held = replace(held, nodes=tuple(here))
            self._hold_end.until = held.until
            self._lost_early.clear()

    @property
    def is_over(self) -> bool:
        return self._over is not None

    @property
    def held(self) -> Held:
        """What is held now."""
        with self._lock:
            return self._held

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that are held now; none once all are lost."""
        with self._lock:
            self._refuse_over()
            return tuple(node.name for node in self._held.nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of its flows. See `Slice.notes`."""
        with self._lock:
            nodes = [(node.name, node.switch) for node in self._held.nodes]
            before = (
                *topology_notes(self._topology, nodes),
                *self._warm.notes,
                *self._boots.notes,
                *self._notes.elements(),
            )
        now = (note for each in self._slices.all() for note in each.notes)
        return summed_notes((*before, *now))

    @overload
    def map(
        self,
        flow: Flowing,
        values: Iterable[object],
        *,
        ahead: int | None = ...,
        on_error: Literal["raise"] = ...,
    ) -> Iterator[list[object]]: ...
    @overload
    def map(
        self,
        flow: Flowing,
        values: Iterable[object],
        *,
        ahead: int | None = ...,
        on_error: Literal["return"],
    ) -> Iterator[RunResult]: ...
    def map(
        self,
        flow: Flowing,
        values: Iterable[object],
        *,
        ahead: int | None = None,
        on_error: OnError = "raise",
    ) -> Iterator[list[object]] | Iterator[RunResult]:
        """Results of one run per item, in order. See `Slice.map`; ahead is for each node.

        Items without a result when their node is lost are run again on another one.
        """
        flow = flow_of(flow, self._flows)
        check_map(values, ahead, on_error)
        options: dict[str, Any] = {"ahead": ahead, "on_error": on_error}
        alone = self._alone(flow)
        if alone is not None:
            return alone.map(values, **options)
        results = self._mapped(flow, values, options)
        watch = self._options.progress
        return counted(watch, flow.name, known_length(values), results) if watch else results

    def _alone(self, flow: Flow) -> Slice | None:
        """That of the one node which runs the items of a map; None of several."""
        slices = self.opened(flow)
        return slices[0] if len(slices) == 1 else None

    def _mapped(
        self, flow: Flow, values: Iterable[object], options: dict[str, Any]
    ) -> Iterator[Any]:
        with HeldMap(values, options["ahead"], self._is_lost, self._goes_on) as run:
            with self._lock:
                self._maps.begin(run, flow, options)
            for node in self._hosts():
                self._join(run, node, flow, options)
            if first := map_first(run.rooms()):
                with self._lock:
                    self._notes[f"items of {flow.name!r} go to {first}"] = 1
            yield from run.results()

    def queued(self) -> Queue:
        """For which runs no node has room, and why. It takes no lock: one may be held for long."""
        names = ", ".join(node.name for node in self._held.nodes)
        return self._maps.queued(), f"there is no room on {names}"

    def _join(self, run: HeldMap, node: Node, flow: Flow, options: dict[str, Any]) -> None:
        try:
            on = self._slices.on(node, flow, self._options)
        except WorkerLost:
            if not self._goes_on(node):
                raise
        else:
            run.join(node, on.places, partial(on.map_run, **options), warm=on.ready)

    def _is_lost(self, of: Node | str) -> bool:
        """Of a node, or of one of this name. Also before it is said: what ran there may be the
        first to know."""
        with self._lock:
            if any(of in (node, node.name) for node in self._lost):
                return True
            held = [node for node in self._held.nodes if of in (node, node.name)]
        for node in held:
            if why := node.why_unreachable().strip("; "):
                if self._lose(node, why):
                    self._on_event(HoldEvent(what="lost", node=node.name, reason=why))
                return True
        return False

    def _lose(self, node: Node, why: str) -> bool:  # noqa: ARG002
        """Returns whether it was not known yet."""
        with self._lock:
            self._lost.add(node)
            left = tuple(each for each in self._held.nodes if each is not node)
            is_new = left != self._held.nodes
            self._held = replace(self._held, nodes=left)
            return is_new

    def _goes_on(self, node: Node | str, lost: int = 1) -> bool:
        """Whether what was lost there begins anew on another node."""
        gone = self._is_lost(node)
        with self._lock:
            may = self._requeue and lost <= MAX_LOST and self._over is None
            return may and gone and self._may_go_on()

    def _may_go_on(self) -> bool:
        """Whether there is a node for what was lost with another."""
        return bool(self._held.nodes)

    def guest(self, name: str) -> "Guest":
        """Start another framework's own cluster on the nodes: dask, jupyter, ray or spark.

        `with s.guest("dask") as at: Client(at.address, **at.options)`. It has all cores of the
        slice, runs in its environment, ends with the `with` or the slice, and leaves nothing.
        Raises SliceRefused if it is not installed there, or does not start; EnvironmentRefused.

        >>> with fo.slice(pool="local") as s:
        ...     try:
        ...         s.guest("hadoop")
        ...     except fo.SliceRefused as error:
        ...         print(error)
        guest 'hadoop': expected one of dask, jupyter, ray, spark
        """
        from flowos.engine.guests._guest import start_guest

        options = self._options
        guest = start_guest(self, name, self._here(), cores=options.cores, env=options.env)
        self._guests.add(guest)
        self._here()  # it may have ended meanwhile, and its guests with it
        return guest

    def resize(self, nodes: int) -> None:
        """Hold this many nodes instead. Runs on a node that is given back raise SliceFreed.

        >>> from pathlib import Path
        >>> size = Path("flowos.toml").write_text("pools.test = {kind = 'fake', nodes = 3}")
        >>> with fo.slice(pool="test") as s:
        ...     s.resize(3)
        ...     len(s.nodes)
        3
        """
        self._adopt(self._provider.resize(self.held, Ask(nodes=nodes).nodes))
        self._close_but(self._held.nodes, given_back)

    def _close_but(self, left: Collection[Node], error: Callable[[], FlowosError]) -> None:
        """End what is open on all other nodes."""
        for node in self._slices.but(left):
            self._close(node, error)

    def leave(self) -> None:
        """Use it no more, and leave its nodes held until its lease ends: see `fo.attach`.

        Raises SliceRefused if it has no lease.

        >>> with fo.slice(pool="local") as s:
        ...     try:
        ...         s.leave()
        ...     except fo.SliceRefused as error:
        ...         print(error)
        slice ... has no lease: give lease_seconds
        """
        if not self._has_lease:
            raise SliceRefused(f"slice {self._held.id} has no lease: give lease_seconds")
        self._end(left_to_lease)
        if self._ending.detach():
            self._provider.leave(self._held)

    def free(self) -> None:
        """Give all back. Twice is once."""
        self._free(freed)

    def free_for(self, why: str) -> None:
        """The same, for a reason that runs which this ends are given."""
        self._free(partial(freed_for, self._held.id, why))

    def _free(self, error: Callable[[], FlowosError]) -> None:
        self._end(error)
        if self._ending.detach():
            self._give_up()

    def _give_up(self) -> None:
        self._provider.free(self._held)

    def __repr__(self) -> str:
        state = "over" if self._over else f"nodes: {', '.join(self.nodes) or 'none'}"
        return f"<slice of pool {self._held.pool!r}, {state}>"

    def _here(self) -> tuple[Node, ...]:
        """The nodes that are left. Raises WorkerLost, or what ended it, if there are none."""
        with self._lock:
            self._refuse_over()
            nodes = self._held.nodes
        if not nodes:
            raise WorkerLost(f"slice {self._held.id}: all its nodes are lost")
        return nodes

    def _refuse_over(self) -> None:
        if self._over is not None:
            raise self._over()

    def _node_of_run(self, flow: Flow) -> Node:
        with self._lock:
            node = self._node_for(flow)
            self._busy[node] += 1
            return node

    def _ready_on(self, nodes: tuple[Node, ...], flow: Flow) -> list[Slice]:
        return self._slices.on_all(nodes, flow, self._options)

    def _over_at(self, node: Node) -> None:
        with self._lock:
            self._busy[node] -= 1

    def _node_for(self, flow: Flow) -> Node:
        nodes = self._hosts()
        if len(nodes) == 1 or not self._warm.weighs(flow):
            return min(nodes, key=self._busy.__getitem__)
        return self._warm.choose(flow, nodes, self._busy, self._options.cores)

    def _hosts(self) -> tuple[Node, ...]:
        """On each of which a flow is opened. Raises as `_here` does."""
        return self._here()

    def happened(self, event: HoldEvent) -> None:
        """What the provider says, by any thread."""
        self._boots.heard(event)
        node = self._named(event.node) if event.what == "lost" else None
        is_new = node is None or self._lose(node, event.reason)
        try:
            if is_new:
                self._on_event(event)
        finally:  # what runs may take a while to end
            if node is not None:
                self._close(node, partial(node_lost, node, event.reason))
            elif event.what == "ended":
                self._end(partial(lease_ended, event.reason))

    def _named(self, name: str) -> Node | None:
        """The node that is lost; None if it is not known to be held yet."""
        with self._lock:
            known = (*self._held.nodes, *(node for node in self._lost if self._slices.has(node)))
            node = next((each for each in known if each.name == name), None)
            if node is None:
                self._lost_early.add(name)
            return node

    def _end(self, error: Callable[[], FlowosError]) -> None:
        with self._lock:
            self._over = self._over or error
        self._slices.end(error)
        self._close_but((), error)
        self._end_guests(tuple(self._guests), error)

    def _end_guests(self, guests: Iterable["Guest"], error: Callable[[], FlowosError]) -> None:
        for guest in guests:
            guest.end(str(error()))

    def _close(self, node: Node, error: Callable[[], FlowosError]) -> None:
        """End what is open on a node."""
        self._warm.left(node)
        self._end_guests([each for each in tuple(self._guests) if each.has_head_on(node)], error)
        for each in self._slices.close(node, error):
            notes = each.notes
            with self._lock:
                self._notes.update(notes)
