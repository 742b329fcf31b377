"""The pool that is this machine: it is there at once, and slices share it by its ledger."""

from collections.abc import Collection

from flowos.engine._leases import Leases
from flowos.engine._node import Node
from flowos.engine._provider import Held, OnHoldEvent, ignore
from flowos.engine.local._here import here
from flowos.model import Ask, Lost, NodeInfo, Pool, SliceRefused


class LocalProvider:
    """See `Provider`. Its one node may be held by many at once."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._leases = Leases(pool, _keep)

    def nodes(self) -> tuple[NodeInfo, ...]:
        node, has = here(), here().resources()
        cores = len(has.cpus)
        if self.pool.cores is not None and self.pool.cores > cores:
            raise SliceRefused(
                f"pool {self.pool.name}: cores = {self.pool.cores}, this node has {cores} for us"
            )
        memory, gpus = has.memory_bytes, has.gpus
        return (NodeInfo(name=node.name, cores=cores, memory_bytes=memory, gpus=gpus),)

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore) -> Held:
        self._refuse_several(ask.nodes)
        refuse_lacking(self.pool, ask, self.nodes())
        return self._leases.begin((here(),), ask, on_event)

    def resize(self, held: Held, nodes: int) -> Held:
        now = self._leases.now(held)
        self._refuse_several(nodes)
        return self._leases.change(now, now.nodes)

    def free(self, held: Held) -> None:
        self._leases.free(held)

    def attach(self, id: str) -> Held | Lost:
        return self._leases.find(id)

    def _refuse_several(self, nodes: int) -> None:
        if nodes != 1:
            raise SliceRefused(f"pool {self.pool.name}: {nodes} nodes asked for, it has 1")


def refuse_lacking(pool: Pool, ask: Ask, nodes: Collection[NodeInfo]) -> None:
    """Raises SliceRefused if these nodes lack what is asked of each, or end with this program."""
    complaints = [complaint for complaint in map(ask.lacks, nodes) if complaint]
    if ask.lease_seconds is not None:
        complaints.append("lease_seconds: what it holds ends with this program")
    if complaints:
        raise SliceRefused(f"pool {pool.name}: {complaints[0]}")


def _keep(nodes: Collection[Node]) -> None:
    """This machine stays."""
