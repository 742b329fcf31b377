"""What is ready on which node of a slice, as far as it takes seconds: images, devices."""

import threading
import time
from collections.abc import Mapping, Sequence

from flowos.engine._node import Node
from flowos.model import Flow
from flowos.plan import NodePicture, choose_node, devices_needed

_CONFIGURE_SECONDS = 2.0
"""What it takes to load a bitstream: seconds. What a task loads is not known, so each flow is taken
to have its own."""
_DECAY = 0.9


class WarmNodes:
    """Of one slice. in_image: whether its tasks run in one. Methods may be called by any thread."""

    def __init__(self, *, in_image: bool) -> None:
        self._in_image = in_image
        self._lock = threading.Lock()
        self._weighed: dict[Flow, bool] = {}
        self._needs_devices: dict[Flow, bool] = {}
        self._image_seconds: dict[Node, float] = {}
        self._configured: dict[Node, Flow] = {}
        self._run_seconds: dict[Flow, float] = {}
        self._notes: dict[str, None] = {}

    def weighs(self, flow: Flow) -> bool:
        """Whether it matters where its runs go; of most flows it does not."""
        known = self._weighed.get(flow)
        if known is None:
            needs = self._needs_devices[flow] = bool(devices_needed(flow))
            known = self._weighed[flow] = self._in_image or needs
        return known

    @property
    def notes(self) -> tuple[str, ...]:
        """Why runs went to other nodes than the least busy."""
        return tuple(self._notes)

    def opened(self, node: Node, began: float) -> None:
        """A flow was made ready there since then; the first one opened the image too."""
        with self._lock:
            self._image_seconds.setdefault(node, time.monotonic() - began)

    def choose(
        self, flow: Flow, nodes: Sequence[Node], busy: Mapping[Node, int], cores: int | None
    ) -> Node:
        """The node of the next run, which begins there."""
        with self._lock:
            opening = max(self._image_seconds.values(), default=0.0) if self._in_image else 0.0
            pictures = [
                NodePicture(
                    busy=busy[node],
                    places=cores or len(node.ledger.whole.cpus),
                    image_seconds=0.0 if node in self._image_seconds else opening,
                    device_seconds=self._device_seconds(node, flow),
                )
                for node in nodes
            ]
            place, why = choose_node(pictures, self._run_seconds.get(flow))
            if self._needs_devices[flow]:
                self._configured[nodes[place]] = flow
            if why:
                self._notes[f"runs of {flow.name!r} go to {nodes[place].name}: {why}"] = None
            return nodes[place]

    def ran(self, flow: Flow, began: float) -> None:
        """A run that began then is over: the longest of the last ones counts."""
        if self._weighed.get(flow):
            with self._lock:
                before = _DECAY * self._run_seconds.get(flow, 0.0)
                self._run_seconds[flow] = max(time.monotonic() - began, before)

    def left(self, node: Node) -> None:
        """It was given back, or is lost."""
        with self._lock:
            self._image_seconds.pop(node, None)
            self._configured.pop(node, None)

    def _device_seconds(self, node: Node, flow: Flow) -> float:
        """Where another flow has configured them, it will have to do so again."""
        last = self._configured.get(node)
        if not self._needs_devices[flow] or last is flow:
            return 0.0
        return _CONFIGURE_SECONDS if last is None else 2 * _CONFIGURE_SECONDS
