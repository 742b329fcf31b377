"""The flows that are ready on the nodes of a slice; in an image, to become so may take minutes."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from flowos._dataclasses import dataclass, field
from flowos.engine._later import Later
from flowos.engine._node import Node
from flowos.engine._open_slice import open_slice
from flowos.engine._options import SliceOptions
from flowos.engine._warm_nodes import WarmNodes
from flowos.engine.flow._slice import Slice
from flowos.model import Flow, FlowosError

Error = Callable[[], FlowosError]


@dataclass(slots=True, eq=False)
class _OnNode:
    """opening: held meanwhile. over: why nothing is ready there any more."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    slices: dict[Flow, Slice] = field(default_factory=dict)
    over: Error | None = None


class OpenSlices:
    """Methods may be called from any thread. warm: learns how long it takes."""

    def __init__(self, warm: WarmNodes) -> None:
        self._warm = warm
        self._lock = threading.Lock()
        self._nodes: dict[Node, _OnNode] = {}
        self._over: Error | None = None

    def on(self, node: Node, flow: Flow, options: SliceOptions) -> Slice:
        """The flow ready on the node; other threads wait. Raises FlowosError if it cannot be."""
        with self._lock:
            if self._over is not None:
                raise self._over()
            there = self._nodes.get(node) or self._nodes.setdefault(node, _OnNode())
        found = there.slices.get(flow)
        if found is not None:
            return found
        with there.opening:
            return there.slices.get(flow) or self._opened(there, node, flow, options)

    def _opened(self, there: _OnNode, node: Node, flow: Flow, options: SliceOptions) -> Slice:
        began = time.monotonic()
        made = open_slice(flow, node, options)
        self._warm.opened(node, began)
        with self._lock:
            if there.over is None:
                there.slices[flow] = made
                return made
        made.end(there.over)
        raise there.over()

    def on_all(self, nodes: Sequence[Node], flow: Flow, options: SliceOptions) -> list[Slice]:
        """The flow ready on each node, on all at once. Raises as `on` does."""
        if ready := self._ready(nodes, flow):
            return ready
        later = [Later(partial(self.on, node, flow, options)) for node in nodes[1:]]
        first = [self.on(node, flow, options) for node in nodes[:1]]
        return [*first, *(each.result() for each in later)]

    def _ready(self, nodes: Sequence[Node], flow: Flow) -> list[Slice]:
        """On each of them; none if it is not yet on one, or all are over: no thread is started."""
        with self._lock:
            there = [self._nodes.get(node) for node in nodes]
        found = [each and each.slices.get(flow) for each in there]
        ready = [each for each in found if each]
        return ready if self._over is None and len(ready) == len(nodes) else []

    def all(self) -> list[Slice]:
        """What is ready on any node."""
        with self._lock:
            return [each for there in self._nodes.values() for each in there.slices.values()]

    def has(self, node: Node) -> bool:
        """Whether something is or becomes ready there."""
        return node in self._nodes

    def but(self, left: Collection[Node]) -> list[Node]:
        """All other nodes on which something is or becomes ready."""
        with self._lock:
            return [node for node in self._nodes if node not in left]

    def close(self, node: Node, error: Error) -> list[Slice]:
        """End what is ready on the node; what becomes so is ended then. Returns what was."""
        with self._lock:
            there = self._nodes.pop(node, _OnNode())
            there.over = error
        ended = list(there.slices.values())
        for each in ended:  # not under the lock: runs there may take a while to end
            each.end(error)
        return ended

    def end(self, error: Error) -> None:
        """From now on nothing becomes ready any more."""
        with self._lock:
            self._over = self._over or error
