"""A `map` over several nodes: each takes items as it has room, and results come in their order.

The caller's thread takes the values, a window ahead of the result that it waits for, and gives the
results. Each node has a thread that runs what it takes. Of what is left, a node takes no more than
its share, so that a few long items go to all of them.
"""

import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, cast

from flowos._collected import apart
from flowos._dataclasses import dataclass
from flowos.engine._held_ends import lost_with
from flowos.engine._node import Node
from flowos.engine.flow._failures import of_item
from flowos.engine.flow._map import MapRun
from flowos.model import FlowosError, RunResult, WorkerLost
from flowos.plan import MapPlaces, map_share

_MAX_LOST = 3
"""An item that loses so many nodes may be what ends them."""
_WINDOWS = 2
"""What is taken and has no result yet, in what nodes have in flight: they do not wait for those
that are slower."""
_NOTHING = object()


MapItem = tuple[int, object, int, int]
"""Its number among the values, its value, how many nodes were lost while it ran, and which attempt
comes next."""


@dataclass(frozen=True, slots=True)
class _Raised:
    """What ends the map where it is, in the place of a result."""

    error: BaseException


class NodePart:
    """What one node runs: the items it takes. See `MapPart`; none come where it may have none now.

    take: adds up to so many items that no node has to `pending`, all of one attempt, and returns
    them. share: how many the part may have now. places: of the node's slice. warm: at so many of
    them a worker waited when it joined.
    """

    def __init__(
        self,
        take: "Callable[[NodePart, int], Sequence[MapItem]]",
        share: "Callable[[NodePart], int]",
        places: int,
        warm: int,
    ) -> None:
        self._take, self._share, self.places, self._warm = take, share, places, warm
        self._max_pending = 0
        self.attempt = 1
        self.leaves = False
        self.pending: deque[MapItem] = deque()
        self.run: MapRun

    def take(self, max_items: int) -> list[object]:
        if not self.run.in_batches or len(self.pending) + max_items > self._max_pending:
            self._max_pending = self._share(self)
        items = self._take(self, min(max_items, self._max_pending - len(self.pending)))
        if items:
            self.attempt = items[0][3]
        return [item[1] for item in items]

    @property
    def rooms(self) -> MapPlaces:
        """With `ahead`, no more are warm than it is sure to fill at once."""
        at_once = self.run.limit // 2 + 1
        return MapPlaces(places=self.places, warm=min(self._warm, at_once))

    def begin(self, begin: Callable[..., MapRun]) -> None:
        self.run = begin((), part=self)

    def number(self, _: int) -> int:
        """Of the first item without a result."""
        return self.pending[0][0]


class HeldMap:
    """One `map`. is_lost: of a node; goes_on: whether what a lost one had runs again on others.

    ahead: how many items of each node may be in flight beyond the one asked for, if that is given.
    grows: whether another node may join now. With it, items wait for nodes until `close`. given:
    counts the results of each node.
    """

    def __init__(
        self,
        values: Iterable[object],
        ahead: int | None,
        is_lost: Callable[[Node | str], bool],
        goes_on: Callable[[Node | str], bool],
        grows: Callable[[], bool] | None = None,
        given: Counter[Node] | None = None,
    ) -> None:
        self._values = iter(values)
        self._windows = _WINDOWS if ahead is None else 1
        self._is_lost, self._goes_on = is_lost, goes_on
        self._grows = grows
        self._given: Counter[Node] = Counter() if given is None else given
        self._closed = grows is None
        self._queue: deque[MapItem] = deque()
        self._parts: dict[Node, NodePart] = {}
        self._results: dict[int, object] = {}
        self._taken = self._wanted = self._refill_at = 0
        self._stop = sys.maxsize
        self._exhausted = self._left = self._joined = False
        self._failed: Exception | None = None
        self._ending: object = _NOTHING
        """With what the last node ended that took part."""
        self._lock = threading.Lock()
        self._came = threading.Condition(self._lock)
        self._queued = threading.Condition(self._lock)
        self._idle = self._unshared = 0
        """Nodes that wait for items, and those of them which had no share of the last ones."""

    def __enter__(self) -> "HeldMap":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is GeneratorExit:  # perhaps by the collector, which may hold any lock
            apart(self._leave)
        else:
            self._leave()

    @property
    def is_over(self) -> bool:
        """Whether its results are not asked for any more."""
        return self._left

    @property
    def backlog(self) -> int:
        """Items that a node more could run now."""
        parts = tuple(self._parts.values())
        beyond = (len(each.pending) - each.places for each in parts if not each.run.in_batches)
        return 0 if self._left else len(self._queue) + sum(max(0, count) for count in beyond)

    @property
    def queued(self) -> int:
        """How many items were taken that no node has."""
        return 0 if self._left else len(self._queue)

    def rooms(self) -> dict[str, MapPlaces]:
        """Of each node that takes part, by name."""
        return {node.name: part.rooms for node, part in self._parts.items()}

    def has(self, node: Node) -> bool:
        """Whether the node takes part."""
        return node in self._parts

    def works(self, node: Node) -> bool:
        """Whether the node has items without a result."""
        part = self._parts.get(node)
        return part is not None and bool(part.pending)

    def release(self, node: Node) -> None:
        """The node takes no more items; `has` says when it has left."""
        with self._lock:
            if node in self._parts:
                self._parts[node].leaves = True
            self._queued.notify_all()

    def close(self, error: Exception) -> None:
        """No node joins any more: without any it ends with this error."""
        with self._lock:
            self._closed, self._ending = True, _Raised(error)
            self._came.notify()

    def join(self, node: Node, places: int, begin: Callable[..., MapRun], *, warm: int = 0) -> None:
        """The node takes part from now on. places, warm: see `NodePart`. begin: `Slice.map_run`."""
        part = NodePart(self._next, self._share, places, warm)
        part.begin(begin)
        with self._lock:
            self._parts[node] = part
            self._joined = True
            self._closed = self._grows is None
            self._came.notify()
        name = f"flowos-map-{node.name}"
        threading.Thread(
            target=self._work, args=(node, part, begin), name=name, daemon=True
        ).start()

    def results(self) -> Iterator[Any]:
        """One for each value, in order. Raises an error in its place if one ends the map."""
        results = self._results
        for number in count():
            if number >= self._refill_at and not self._exhausted:
                self._fill(number)
            result = results.pop(number, _NOTHING)
            if result is _NOTHING:
                if number == self._taken:
                    break
                result = self._awaited(number)
            if type(result) is _Raised:
                raise of_item(result.error, number) from result.error.__cause__
            yield result
        if self._failed is not None:
            raise self._failed

    def _window(self) -> int:
        """How many items may be taken before the first of them has a result."""
        limits = [part.run.limit for part in tuple(self._parts.values())]
        return self._windows * sum(limits) or 1

    def _fill(self, number: int) -> None:
        window = self._window()
        until, self._refill_at = number + window, number + (window + 1) // 2
        queue, taken = self._queue, self._taken
        try:
            while taken < until:
                queue.append((taken, next(self._values), 0, 1))
                taken += 1
                if self._idle and (len(queue) == 1 or self._unshared):  # others know of more
                    self._wake()
        except StopIteration:
            self._exhausted = True
        except Exception as error:
            self._exhausted, self._failed = True, error
        finally:
            self._taken = taken

    def _awaited(self, number: int) -> object:
        while self._waits(number):
            self._fill(number)  # for the nodes that have joined
        return self._results.pop(number, self._ending)

    def _waits(self, number: int) -> bool:
        """Until the result is there, or will not be; True if nodes have joined before."""
        with self._lock:
            self._wanted = number
            while number not in self._results and (self._parts or not self._closed):
                if self._joined and not self._exhausted:
                    self._joined = False
                    return True
                self._came.wait()
        return False

    def _next(self, part: NodePart, most: int) -> Sequence[MapItem]:
        """What comes after an item that ended the map is left out."""
        taken: list[MapItem] = []
        with self._lock:  # no item is nowhere while another node asks for its share
            queue = self._queue
            while queue and len(taken) < most and (not taken or queue[0][3] == taken[0][3]):
                item = queue.popleft()
                if item[0] < self._stop:
                    taken.append(item)
            part.pending.extend(taken)
        return taken

    def _share(self, part: NodePart) -> int:
        """How many of the items without a result the part may have.

        What its places do not run now is left for a node that may join.
        """
        if self._left or part.leaves:
            return 0
        parts = [each for each in tuple(self._parts.values()) if not each.leaves]
        items = len(self._queue) + sum(len(each.pending) for each in parts)
        share = map_share(part.rooms, [each.rooms for each in parts], items)
        if self._grows is None or share <= part.places or not self._grows():
            return share
        return max(part.places, share * len(parts) // (len(parts) + 1))

    def _work(self, node: Node, part: NodePart, begin: Callable[..., MapRun]) -> None:
        """Run items as long as there are any, or may be. A thread of its own for each node."""
        while True:
            try:
                while self._await_items(part):
                    for batch in part.run.batches():
                        if self._runs_again(node, batch[0]):
                            raise batch[0].error
                        self._give([part.pending.popleft()[0] for _ in batch], batch)
                        self._given[node] += len(batch)
                if part.leaves:
                    self._leave_out(node)
                return
            except BaseException as error:
                lost = self._lost_node(node, error)
                over = lost is node or not part.pending
                self._put_back(part, error, lost)
                if over:
                    self._leave_out(node, error)
                    return
            part.begin(begin)  # for items before the one that failed

    def _runs_again(self, node: Node, result: object) -> bool:
        error = result.error if isinstance(result, RunResult) else None
        if not isinstance(error, WorkerLost) or not error.requeue:
            return False
        lost = self._lost_node(node, error)
        return lost is not None and self._goes_on(lost)

    def _lost_node(self, node: Node, error: BaseException | None) -> Node | str | None:
        """The one with which a run there was lost; of another one its name."""
        if not isinstance(error, WorkerLost):
            return None
        lost = lost_with(node, error)
        return lost if self._is_lost(lost) else None

    def _await_items(self, part: NodePart) -> bool:
        with self._lock:
            self._idle += 1
            unshared = False
            while not (self._left or part.leaves or (self._queue and self._share(part))):
                if self._queue and not unshared:  # said before the share is asked for again
                    unshared = True
                    self._unshared += 1
                else:
                    self._queued.wait()
            self._unshared -= unshared
            self._idle -= 1
            return not (self._left or part.leaves)

    def _give(self, numbers: Sequence[int], results: Sequence[object]) -> None:
        self._results.update(zip(numbers, results, strict=True))
        if self._wanted in self._results:
            with self._lock:
                self._came.notify()

    def _put_back(self, part: NodePart, error: BaseException, lost: Node | str | None) -> None:
        """What the part has no results of. The first failed, or all were lost with a node."""
        items = [*part.pending]
        part.pending.clear()
        if lost is None:
            for item in items[:1]:
                self._end_at(item[0], error)
            left = items[1:]
        elif any(item[2] >= _MAX_LOST for item in items) or not self._goes_on(lost):
            for item in items:
                self._end_at(item[0], error)
            left = []
        else:
            left = list(self._requeued(part, items, error))
        self._queue.extendleft(reversed(left))
        self._wake()

    def _requeued(
        self, part: NodePart, items: Sequence[MapItem], error: BaseException
    ) -> Iterator[MapItem]:
        """All but those whose task may have begun, and runs at most once."""
        known = [*part.run.in_flight, *((True, 0) for _ in items)]
        for item, (may, repeats) in zip(items, known):  # noqa: B905 - of others it is the same
            number, value, times, attempt = item
            if may:
                yield number, value, times + 1, attempt + repeats + 1
            else:
                self._end_at(number, error, returns=part.run.goes_on)

    def _end_at(self, number: int, error: BaseException, *, returns: bool = False) -> None:
        """returns: the map goes on after it."""
        if returns and isinstance(error, FlowosError):
            named = of_item(error, number)
            self._give([number], [RunResult(error=cast("FlowosError", named))])
            return
        self._stop = min(self._stop, number)
        self._give([number], [_Raised(error)])

    def _leave_out(self, node: Node, error: BaseException | None = None) -> None:
        with self._lock:
            del self._parts[node]
            if error is not None and (self._grows is None or not self._closed):
                self._ending = _Raised(error)
            self._came.notify()
            self._queued.notify_all()  # the shares of others are larger now

    def _wake(self) -> None:
        with self._lock:
            self._queued.notify_all()

    def _leave(self) -> None:
        """No more is taken; what runs is cancelled."""
        with self._lock:
            self._left = True
            self._queued.notify_all()
            parts = tuple(self._parts.values())
        for part in parts:
            part.run.leave()
