"""A slice that holds as many nodes as there is work for, between two bounds.

One thread looks at what runs and waits, and does what `plan.growth_step` says; it ends with the
slice. Another one waits for a node, if one is asked for. What waits for one that does not come
raises why.
"""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flowos._dataclasses import replace
from flowos.engine._elastic_hold import ElasticHold
from flowos.engine._growth_state import GrowthFailures, IdleTimes, look_after
from flowos.engine._held_ends import given_back, weakly
from flowos.engine._held_map import HeldMap
from flowos.engine._held_runs import flow_of
from flowos.engine._held_slice import HeldSlice
from flowos.engine._live_maps import LiveMap
from flowos.engine._node import Node
from flowos.engine._options import Flowing, SliceOptions
from flowos.engine._provider import CancelToken, Held, HoldEvent, OnHoldEvent, Provider, ignore
from flowos.engine._waiting_run import WaitingRun
from flowos.engine._waiting_tasks import Queue
from flowos.engine.flow._core_share import is_at_a_place
from flowos.model import Ask, Cancelled, Flow, FlowosError, SliceFreed, SliceRefused
from flowos.plan import GrowthView, NodeRange, growth_step, why_no_node

if TYPE_CHECKING:
    from concurrent.futures import Future

    from flowos.engine.guests._guest import Guest

_LOOK_SECONDS = 0.1
_IN_TIME_SECONDS = 1.0


class GrowingSlice(HeldSlice):
    """Nodes of a pool that come and go with the work. Made by `fo.slice(nodes=(MIN, MAX))`."""

    def __init__(
        self,
        provider: Provider,
        ask: Ask,
        options: SliceOptions,
        on_event: OnHoldEvent = ignore,
        *,
        bounds: NodeRange,
        requeue: bool = True,
    ) -> None:
        """Raises SliceRefused for what the pool can never give. Waits for the least nodes."""
        self._bounds = bounds
        self._wake = threading.Event()
        self._line: deque[WaitingRun] = deque()
        self._callers: list[Flow] = []
        self._coming: CancelToken | None = None
        self._leaving: set[Node] = set()
        self._failures = GrowthFailures(provider.pool.name)
        self._times = IdleTimes()
        self._done = self._times.done
        self._backed, self._since = False, 0.0
        """Whether there was a backlog when it looked last, and since when."""
        provider.check(replace(ask, nodes=bounds.max_nodes))
        super().__init__(provider, ask, options, on_event, requeue=requeue)
        words = (weakref.ref(self), self._wake)
        threading.Thread(target=look_after, args=words, name="flowos-grow", daemon=True).start()

    def _begin(self, ask: Ask) -> Callable[[], None]:
        self._room = threading.Condition(self._lock)
        words = (self._bounds.max_nodes, weakly(self.happened), self._wake.set)
        self._hold = ElasticHold(self._provider, ask, *words)
        if self._bounds.min_nodes:
            self._adopt(self._hold.more(self._bounds.min_nodes, CancelToken()))
        return self._hold.free

    def _give_up(self) -> None:
        self._hold.free()

    @property
    def notes(self) -> tuple[str, ...]:
        """Also why it does not grow any more."""
        stopped = self._failures.stopped
        return (*super().notes, *((stopped,) if stopped else ()))

    def submit(self, flow: Flowing, /, *values: object, **named: object) -> "Future[list[object]]":
        """As `HeldSlice.submit`. It waits in a line until a node has room."""
        flow = flow_of(flow, self._flows)
        with self._lock:
            waits = self._with_room() is None or self._line
            if waits and self._options.workers != "inline":
                run = WaitingRun(self, flow, values, named)
                self._line.append(run)
                self._wake.set()
                return run
            begun = self._begun(flow)
        return self._followed(*begun, values, named)

    def _restart(self, run: WaitingRun) -> bool:
        if self._options.workers == "inline":
            return super()._restart(run)
        with self._lock:
            goes_on = self._over is None
            if goes_on:
                self._line.append(run)
        self._wake.set()
        return goes_on

    def guest(self, name: str) -> "Guest":
        """Raises SliceRefused for any name, as a guest keeps its nodes."""
        raise SliceRefused(f"guest {name}: this slice gives nodes back: hold a number, as nodes=2")

    def resize(self, nodes: int) -> None:
        """Hold this many now; from there on it grows and shrinks again, also if it had stopped.

        Raises SliceRefused if they cannot be had. Runs on a node that is given back raise
        SliceFreed.
        """
        low, high = self._bounds.min_nodes, self._bounds.max_nodes
        if type(nodes) is not int or not low <= nodes <= high:
            raise SliceRefused(f"resize: nodes={nodes!r}; this slice has {low} to {high}")
        cancel = CancelToken()
        self._takes_over(cancel)
        try:
            missing = nodes - len(self.nodes)
            if missing > 0:
                self._came(self._hold.more(missing, cancel))
            elif missing < 0:
                self._give_back(self._longest_idle()[:-missing])
        finally:
            with self._lock:
                self._coming = None
            self._wake.set()

    def _here(self) -> tuple[Node, ...]:
        """There may be none."""
        with self._lock:
            self._refuse_over()
            return self._held.nodes

    def happened(self, event: HoldEvent) -> None:
        """A lease that ends before its time is the loss of its nodes."""
        until = self._held.until
        early = until is None or time.time() < until - _IN_TIME_SECONDS
        if event.what != "ended" or not early:
            super().happened(event)
        else:
            for node in self._held.nodes:
                self.happened(HoldEvent(what="lost", node=node.name, reason=event.reason))
        self._changed()

    def _takes_over(self, cancel: CancelToken) -> None:
        """Wait for nodes instead of the thread that does."""
        with self._room:
            self._refuse_over()
            self._failures.forget()
            while self._coming is not None:
                self._coming.cancel()
                self._room.wait()
            self._coming = cancel

    def _usable(self) -> tuple[Node, ...]:
        return tuple(node for node in self._held.nodes if node not in self._leaving)

    def queued(self) -> Queue:
        line = [(flow, 1) for flow in (*self._callers, *(run.flow for run in tuple(self._line)))]
        view = GrowthView(
            idle=(0.0,) * len(self._held.nodes),
            coming=self._coming is not None,
            failures=self._failures.count,
        )
        why = why_no_node(view, self._bounds, self._hold.said, self._failures.last)
        return [*line, *self._maps.queued()], self._failures.stopped or why

    def _grows(self) -> bool:
        """Whether another node may come yet."""
        return not self._failures.stopped and len(self._held.nodes) < self._bounds.max_nodes

    def _may_go_on(self) -> bool:
        """Else what waits for one raises why none comes."""
        return True

    def _has_more(self) -> bool:
        """Whether there is a node for what waits, or may be."""
        return bool(self._held.nodes) or not self._failures.stopped

    def _with_room(self) -> Node | None:
        """The node of the next run; None: wait for room. Raises FlowosError if none can."""
        self._refuse_over()
        nodes = self._usable()
        if not nodes:
            if not self._has_more():
                raise SliceRefused(self._failures.stopped)
            return None
        node = min(nodes, key=lambda each: self._busy[each] / self._options.places_on(each))
        full = self._busy[node] >= self._options.places_on(node)
        if not full or not self._grows():
            return node
        in_a_task = is_at_a_place(threading.get_ident())  # which may be what others wait for
        return node if in_a_task else None

    def _node_for(self, flow: Flow) -> Node:
        """Waits for the least busy one. The lock is free meanwhile."""
        with self._room:
            self._callers.append(flow)
            try:
                while (node := self._with_room()) is None:
                    self._wake.set()
                    self._room.wait()
            finally:
                self._callers.remove(flow)
            return node

    def _over_at(self, node: Node) -> None:
        super()._over_at(node)
        self._done[node] += 1
        if self._callers or self._line:
            self._changed()

    def _alone(self, flow: Flow) -> None:  # noqa: ARG002
        """A map has a thread for each node, as others may join."""
        with self._lock:
            self._refuse_over()

    def _mapped(
        self, flow: Flow, values: Iterable[object], options: dict[str, Any]
    ) -> Iterator[Any]:
        words = (self._is_lost, self._goes_on, self._grows, self._done)
        with HeldMap(values, options["ahead"], *words) as run:
            with self._lock:
                live = self._maps.begin(run, flow, options)
                if not self._has_more():
                    run.close(SliceRefused(self._failures.stopped))
            self._join_nodes(live)
            self._wake.set()
            yield from run.results()

    def _join_nodes(self, live: LiveMap) -> None:
        with self._lock:
            if self._over is None:
                live.join(self._usable(), self._join)

    def _end(self, error: Callable[[], FlowosError]) -> None:
        with self._room:
            self._over = self._over or error
            maps, waiting = self._maps.all(), tuple(self._line)
            self._line.clear()
            self._room.notify_all()
        for live in maps:
            live.run.close(error())
        for run in waiting:
            run.refuse(error())
        self._wake.set()
        super()._end(error)

    def _changed(self) -> None:
        with self._room:
            self._room.notify_all()
        self._wake.set()

    def look(self) -> float | None:
        """See `Looking`."""
        with self._lock:
            if self._over is not None:
                return None
        self._begin_waiting()
        with self._lock:
            mapping = bool(self._maps)
            view = self._view(time.monotonic())
            nodes = self._usable()
            step = growth_step(view, self._bounds)
            if step.withdraw and self._coming is not None:
                self._coming.cancel()
            if step.grow:
                self._ask_for_more()
        self._release([nodes[i] for i in step.give_back])
        with self._lock:
            goes_on = (mapping, self._coming, self._leaving, view.backlog)
            beyond = len(self._held.nodes) != self._bounds.min_nodes
            return _LOOK_SECONDS if beyond or any(goes_on) else None

    def _view(self, now: float) -> GrowthView:
        backlog = len(self._callers) + len(self._line) + self._maps.backlog
        if bool(backlog) != self._backed:
            self._backed, self._since = bool(backlog), now
        for node in self._held.nodes:
            if self._done[node]:
                self._failures.works(node)
        return GrowthView(
            idle=tuple(self._idle(node, now) for node in self._usable()),
            leaving=len(self._leaving),
            backlog=backlog,
            backlog_seconds=now - self._since if backlog else 0.0,
            quiet_seconds=0.0 if backlog else now - self._since,
            coming=self._coming is not None,
            failures=self._failures.count,
            failed_seconds=self._failures.seconds,
        )

    def _idle(self, node: Node, now: float) -> float:
        """Seconds since it worked."""
        works = bool(self._busy[node]) or self._maps.works(node)
        return self._times.seconds(node, now, works=works)

    def _longest_idle(self) -> list[Node]:
        now = time.monotonic()
        with self._lock:
            return sorted(self._usable(), key=lambda each: -self._idle(each, now))

    def _begin_waiting(self) -> None:
        """Begin what was submitted, as far as nodes have room."""
        while True:
            with self._lock:
                if not self._line or (self._has_more() and self._with_room() is None):
                    return
                run = self._line.popleft()
                try:
                    node, on = self._begun(run.flow)
                except Exception as error:
                    run.refuse(error)
                    continue
            self._begin_there(run, node, on)

    def _ask_for_more(self) -> None:
        cancel = self._coming = CancelToken()
        count = max(1, self._bounds.min_nodes - len(self._held.nodes))
        self._hold.begin_more(count, cancel, weakly(self.came))

    def came(self, got: Held | Exception) -> None:
        """What became of the wait for more."""
        try:
            if isinstance(got, Held):
                self._came(got)
            elif isinstance(got, SliceFreed):
                self._end(lambda: SliceFreed(str(got)))
            elif not isinstance(got, Cancelled):
                self._failed(str(got) or type(got).__name__)
        finally:
            with self._lock:
                self._coming = None
            self._changed()

    def _came(self, held: Held) -> None:
        self._adopt(held)
        with self._lock:
            maps = self._maps.all()
            self._since = time.monotonic()
        self._changed()
        for live in maps:
            try:
                self._join_nodes(live)
            except Exception as error:
                live.run.close(error)
                self._failed(str(error))

    def _lose(self, node: Node, why: str) -> bool:
        is_new = super()._lose(node, why)
        if is_new and not (self._failures.is_proven(node) or self._done[node]):
            self._failed(f"node {node.name} was lost: {why}")
        return is_new

    def _failed(self, why: str) -> None:
        """Stop growing if it is one too many."""
        with self._lock:
            if not self._failures.add(why):
                return
            stopped, maps = self._failures.stopped, self._maps.all()
        for live in maps:
            live.run.close(SliceRefused(stopped))
        self._on_event(HoldEvent(what="stopped", reason=stopped))

    def _release(self, idle: Collection[Node]) -> None:
        """Give these back once no map uses them, and those of before."""
        with self._lock:
            self._leaving.update(node for node in idle if not self._busy[node])
            self._leaving.intersection_update(self._held.nodes)
            left = self._maps.release(self._leaving)
        if left:
            self._give_back(left)

    def _give_back(self, nodes: Collection[Node]) -> None:
        with self._lock:
            left = tuple(node for node in self._held.nodes if node not in nodes)
            self._held = replace(self._held, nodes=left)
            self._leaving.difference_update(nodes)
            for node in nodes:
                self._times.left(node)
                self._failures.left(node)
                self._maps.left(node)
        self._close_but(left, given_back)
        try:
            self._hold.give_back([node.name for node in nodes])
        except FlowosError as error:  # it is held until all is freed
            with self._lock:
                self._notes[str(error)] = 1
        self._changed()
