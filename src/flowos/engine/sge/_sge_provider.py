"""The pool that is a queue of the Grid Engine cluster of this login node."""

from dataclasses import replace

from flowos.drivers._allocators import lacking, no_such
from flowos.drivers.allocators.sge import (
    nodes_words,
    parallel_words,
    queue_words,
    queues_words,
    read_names,
    read_nodes,
    read_parallel,
    read_queue,
    refusal,
    whole_nodes,
)
from flowos.engine._provider import Held, OnHoldEvent, ignore
from flowos.engine.sge._allocation import GRID_ENGINE
from flowos.model import Ask, Lost, NodeInfo, Pool, SliceRefused

_SHOWN = 3
_NOT_YET = "this version of FlowOS cannot hold them yet"


class SgeProvider:
    """See `Provider`. It finds out what the cluster has for it; slices are refused."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def nodes(self) -> tuple[NodeInfo, ...]:
        """Raises SliceRefused: why the cluster has not what the pool says, or `_NOT_YET`."""
        raise self._not_yet(Ask(nodes=self.pool.nodes, seconds=self.pool.max_seconds))

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore) -> Held:  # noqa: ARG002
        raise self._not_yet(ask)

    def resize(self, held: Held, nodes: int) -> Held:
        """Grid Engine changes no job that runs."""
        raise SliceRefused(f"slice {held.id}: {nodes} nodes asked for, and none is held")

    def free(self, held: Held) -> None:
        """Nothing is held."""

    def attach(self, id: str) -> Held | Lost:  # noqa: ARG002
        return Lost(f"pool {self.pool.name} holds nothing: {_NOT_YET}")

    def _not_yet(self, ask: Ask) -> SliceRefused:
        try:
            nodes = self._checked(ask)
        except SliceRefused as error:
            return self._refused(str(error))
        names = ", ".join(f"{node.name} ({node.state})" for node in nodes[:_SHOWN])
        more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
        return self._refused(f"the cluster has {names}{more} for it, but {_NOT_YET}")

    def _checked(self, ask: Ask) -> tuple[NodeInfo, ...]:
        queues = GRID_ENGINE.answered(queues_words(), read_names)
        if self.pool.queue not in queues:
            raise SliceRefused(no_such("queue", self.pool.queue, queues))
        queue = GRID_ENGINE.answered(queue_words(self.pool.queue), read_queue)
        if self.pool.pe not in queue.parallel:
            what = f"parallel environment in queue {queue.name!r}:"
            raise SliceRefused(no_such(what, self.pool.pe, queue.parallel))
        parallel = GRID_ENGINE.answered(parallel_words(self.pool.pe), read_parallel)
        pool = whole_nodes(self.pool, ask, parallel)
        if isinstance(pool, str):
            raise SliceRefused(pool)
        nodes = GRID_ENGINE.answered(nodes_words(queue.name), read_nodes)
        each = replace(ask, cores=pool.cores)
        if complaint := refusal(pool, ask, queue, parallel) or lacking(each, nodes):
            raise SliceRefused(complaint)
        return nodes

    def _refused(self, why: str) -> SliceRefused:
        return SliceRefused(f"pool {self.pool.name}: {why}")
