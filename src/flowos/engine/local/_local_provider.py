"""The pool that is this machine: it is there at once, and slices share it by its ledger."""

from collections.abc import Collection

from flowos.drivers._allocators import no_device
from flowos.engine._leases import Leases
from flowos.engine._node import Node
from flowos.engine._provider import NEVER, CancelToken, Held, OnHoldEvent, ignore
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
        fpgas = len(node.fpga_names())
        info = NodeInfo(
            name=node.name,
            cores=cores,
            memory_bytes=has.memory_bytes,
            gpus=has.gpus,
            devices=(("fpga", fpgas),) if fpgas else (),
        )
        return (info,)

    def check(self, ask: Ask) -> None:
        self._refuse_several(ask.nodes)
        refuse_lacking(self.pool, ask, self.nodes())

    def hold(
        self,
        ask: Ask,
        on_event: OnHoldEvent = ignore,
        cancel: CancelToken = NEVER,  # noqa: ARG002 - it is there at once
    ) -> Held:
        self.check(ask)
        return self._leases.begin((here(),), ask, on_event)

    def resize(
        self,
        held: Held,
        nodes: int,
        cancel: CancelToken = NEVER,  # noqa: ARG002 - it never waits
        on_event: OnHoldEvent = ignore,  # noqa: ARG002
    ) -> Held:
        self._leases.now(held)
        self._refuse_several(nodes)
        return self._leases.add(held, ())

    def give_back(self, held: Held, names: Collection[str]) -> Held:
        return self._leases.give_back(held, names)

    def free(self, held: Held) -> None:
        self._leases.free(held)

    def leave(self, held: Held) -> None:
        self.free(held)

    def attach(self, id: str, on_event: OnHoldEvent = ignore) -> Held | Lost:  # noqa: ARG002
        return self._leases.find(id)

    def _refuse_several(self, nodes: int) -> None:
        if nodes != 1:
            raise SliceRefused(f"pool {self.pool.name}: {nodes} nodes asked for, it has 1")


def refuse_lacking(pool: Pool, ask: Ask, nodes: Collection[NodeInfo]) -> None:
    """Raises SliceRefused if these nodes lack what is asked of each, or end with this program."""
    complaints = [no_device(ask.device_counts, tuple(nodes))] * bool(ask.devices)
    complaints += map(ask.lacks, nodes)
    complaints = [complaint for complaint in complaints if complaint]
    if ask.topology:
        complaints.append(f"topology={ask.topology!r}: it has no switches")
    if ask.lease_seconds is not None:
        complaints.append("lease_seconds: what it holds ends with this program")
    if complaints:
        raise SliceRefused(f"pool {pool.name}: {complaints[0]}")


def _keep(nodes: Collection[Node]) -> None:
    """This machine stays."""
