"""The maps over nodes of a slice whose results are asked for."""

from collections.abc import Callable, Collection
from typing import Any

from flowos._dataclasses import dataclass, field
from flowos.engine._held_map import HeldMap
from flowos.engine._node import Node
from flowos.model import Flow

Join = Callable[[HeldMap, Node, Flow, dict[str, Any]], None]


@dataclass(slots=True, eq=False)
class LiveMap:
    """nodes: those that take part, or cannot."""

    run: HeldMap
    flow: Flow
    options: dict[str, Any]
    nodes: set[Node] = field(default_factory=set)

    def join(self, nodes: Collection[Node], join: Join) -> None:
        """Those of these nodes that take no part yet. join: raises if one cannot."""
        for node in nodes:
            if node not in self.nodes:
                self.nodes.add(node)
                join(self.run, node, self.flow, self.options)


class LiveMaps:
    """Not safe for threads."""

    def __init__(self) -> None:
        self._maps: list[LiveMap] = []

    def __bool__(self) -> bool:
        self._drop_over()
        return bool(self._maps)

    @property
    def backlog(self) -> int:
        return sum(each.run.backlog for each in self._maps)

    def queued(self) -> list[tuple[Flow, int]]:
        """How many items of which flow no node has. Safe for threads."""
        return [(each.flow, count) for each in tuple(self._maps) if (count := each.run.queued)]

    def begin(self, run: HeldMap, flow: Flow, options: dict[str, Any]) -> LiveMap:
        self._drop_over()
        live = LiveMap(run, flow, options)
        self._maps.append(live)
        return live

    def all(self) -> tuple[LiveMap, ...]:
        return tuple(self._maps)

    def works(self, node: Node) -> bool:
        """Whether it has items without a result."""
        return any(each.run.works(node) for each in self._maps)

    def release(self, nodes: Collection[Node]) -> list[Node]:
        """They take no more items. Returns those that have left all maps."""
        for each in self._maps:
            for node in nodes:
                each.run.release(node)
        return [node for node in nodes if not any(each.run.has(node) for each in self._maps)]

    def left(self, node: Node) -> None:
        """It was given back; it may come again."""
        for each in self._maps:
            each.nodes.discard(node)

    def _drop_over(self) -> None:
        self._maps = [each for each in self._maps if not each.run.is_over]
