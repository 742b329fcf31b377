"""The pool that is a queue of the Grid Engine cluster of this login node."""

import os
from pathlib import Path

from flowos._dataclasses import replace
from flowos.drivers._allocators import lacking, no_such
from flowos.drivers.allocators.sge import (
    nodes_words,
    parallel_words,
    queue_words,
    queues_words,
    read_names,
    read_nodes,
    read_parallel,
    read_port,
    read_queue,
    refusal,
    whole_nodes,
)
from flowos.engine._provider import CancelToken, OnHoldEvent
from flowos.engine.cluster._cluster_node import JobNodes
from flowos.engine.cluster._cluster_provider import ClusterProvider, waits
from flowos.engine.cluster._held_job import HeldJob
from flowos.engine.sge._allocation import GRID_ENGINE, SgeAllocation, allocate
from flowos.engine.sge._sge_node import SgeNode
from flowos.model import Ask, NodeInfo, Pool, SliceRefused


class SgeProvider(ClusterProvider):
    """Nodes of a job are given back together: Grid Engine changes none that runs."""

    def _checked(self, ask: Ask) -> tuple[NodeInfo, ...]:
        try:
            return self._looked_up(ask)[1]
        except SliceRefused as error:
            raise self._refused(str(error)) from None

    def _looked_up(self, ask: Ask) -> tuple[Pool, tuple[NodeInfo, ...]]:
        """The pool with the cores of each node, and its nodes."""
        _execd_port()
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
        return pool, nodes

    def _begun(
        self,
        ask: Ask,
        on_event: OnHoldEvent,
        cancel: CancelToken,
        proof: Path,
        held: tuple[str, ...],
    ) -> HeldJob:
        pool, _ = self._looked_up(ask)
        wanted = (self._session, pool, ask, waits(on_event))
        return allocate(*wanted, proof=proof, cancel=cancel, held=held)

    def _nodes_of(self, allocation: HeldJob, base: Path) -> tuple[SgeNode, ...]:
        assert isinstance(allocation, SgeAllocation)
        port, job = _execd_port(), JobNodes(base, self.pool.scratch)
        return tuple(SgeNode(kept, allocation, port, job) for kept in allocation.nodes)


def _execd_port() -> int:
    return read_port(os.environ.get("SGE_EXECD_PORT", ""))
