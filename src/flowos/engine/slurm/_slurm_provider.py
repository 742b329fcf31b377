"""The pool that is a partition of the Slurm cluster of this login node."""

from flowos.drivers.allocators.slurm import (
    SlurmPartition,
    nodes_words,
    partition_of,
    partitions_words,
    read_nodes,
    read_partitions,
    refusal,
    too_few,
)
from flowos.engine._provider import Held, OnHoldEvent, ignore
from flowos.engine.slurm._commands import answered
from flowos.model import Ask, Lost, NodeInfo, Pool, SliceRefused

_SHOWN = 3
_NOT_YET = "this version of FlowOS cannot hold them yet"


class SlurmProvider:
    """See `Provider`. It finds out what the cluster has for it; slices are refused."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def nodes(self) -> tuple[NodeInfo, ...]:
        """Raises SliceRefused: why the cluster has not what the pool says, or `_NOT_YET`."""
        raise self._not_yet(Ask(nodes=self.pool.nodes, seconds=self.pool.max_seconds))

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore) -> Held:  # noqa: ARG002
        raise self._not_yet(ask)

    def resize(self, held: Held, nodes: int) -> Held:
        raise SliceRefused(f"slice {held.id}: {nodes} nodes asked for, and none is held")

    def free(self, held: Held) -> None:
        """Nothing is held."""

    def attach(self, id: str) -> Held | Lost:  # noqa: ARG002
        return Lost(f"pool {self.pool.name} holds nothing: {_NOT_YET}")

    def _not_yet(self, ask: Ask) -> SliceRefused:
        nodes = self._checked(ask)
        names = ", ".join(f"{node.name} ({node.state})" for node in nodes[:_SHOWN])
        more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
        return self._refused(f"the cluster has {names}{more} for it, but {_NOT_YET}")

    def _checked(self, ask: Ask) -> tuple[NodeInfo, ...]:
        try:
            partition = self._partition()
            nodes = answered(nodes_words(partition.name), read_nodes)
        except SliceRefused as error:
            raise self._refused(str(error)) from None
        complaint = refusal(ask, partition) or too_few(self.pool, ask, nodes)
        if complaint:
            raise self._refused(complaint)
        return nodes

    def _partition(self) -> SlurmPartition:
        found = partition_of(self.pool, answered(partitions_words(), read_partitions))
        if isinstance(found, str):
            raise SliceRefused(found)
        return found

    def _refused(self, why: str) -> SliceRefused:
        return SliceRefused(f"pool {self.pool.name}: {why}")
