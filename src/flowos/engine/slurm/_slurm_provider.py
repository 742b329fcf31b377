"""The pool that is a partition of the Slurm cluster of this login node."""

from collections.abc import Collection
from dataclasses import replace

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
from flowos.drivers.allocators.slurm_nodes import (
    SLURMD_PORT,
    addresses_words,
    config_words,
    read_addresses,
    read_config,
)
from flowos.engine._leases import Leases
from flowos.engine._node import Node
from flowos.engine._provider import Held, HoldEvent, OnHoldEvent, ignore
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._allocation import allocate
from flowos.engine.slurm._commands import answered
from flowos.engine.slurm._shared_folder import base_of, refuse_blind, shown
from flowos.engine.slurm._slurm_node import SlurmNode
from flowos.model import Ask, Lost, NodeInfo, Pool, SliceRefused


class SlurmProvider:
    """See `Provider`. Nodes that are added to a slice are those of a job of their own."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._session = LaunchSession()
        self._leases = Leases(pool, self._give_back)
        self._asks: dict[str, Ask] = {}

    def nodes(self) -> tuple[NodeInfo, ...]:
        return self._checked(Ask(nodes=self.pool.nodes, seconds=self.pool.max_seconds))

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore) -> Held:
        self._checked(ask)
        if ask.lease_seconds is not None:
            raise self._refused("lease_seconds: what it holds ends with this program")
        nodes = self._allocated(ask, on_event)
        try:
            held = self._leases.begin(nodes, ask, on_event)
        except BaseException:
            nodes[0].allocation.free()
            raise
        self._asks[held.id] = ask
        self._watch(held, nodes)
        return held

    def resize(self, held: Held, nodes: int) -> Held:
        now = self._leases.now(held)
        missing = nodes - len(now.nodes)
        if nodes < 1:
            raise SliceRefused(f"slice {held.id}: {nodes} nodes asked for; free it instead")
        if missing > 0:
            ask = self._asks[held.id]
            self._checked(replace(ask, nodes=nodes))
            more = self._allocated(replace(ask, nodes=missing), ignore)
            changed = self._leases.change(now, (*now.nodes, *more))
            self._watch(held, more)
            return changed
        changed = self._leases.change(now, now.nodes[:nodes])
        self._give_back(now.nodes[nodes:])
        return changed

    def free(self, held: Held) -> None:
        self._leases.free(held)
        self._asks.pop(held.id, None)

    def attach(self, id: str) -> Held | Lost:
        return self._leases.find(id)

    def _allocated(self, ask: Ask, on_event: OnHoldEvent) -> tuple[SlurmNode, ...]:
        def waits(reason: str) -> None:
            on_event(HoldEvent(what="waiting", reason=reason))

        try:
            base = base_of(self.pool)
            config = answered(config_words(), read_config)
            with shown(base) as (proof, word):
                allocation = allocate(self._session, self.pool, ask, waits, proof=proof)
            try:
                refuse_blind(self.pool, base, word, allocation.nodes)
                names = [kept.name for kept in allocation.nodes]
                addresses = answered(addresses_words(names), read_addresses)
            except SliceRefused:
                allocation.free()
                raise
        except SliceRefused as error:
            raise self._refused(str(error)) from None
        return tuple(
            SlurmNode(
                kept,
                allocation,
                config,
                addresses.get(kept.name, (kept.name, SLURMD_PORT)),
                base,
            )
            for kept in allocation.nodes
        )

    def _watch(self, held: Held, nodes: tuple[SlurmNode, ...]) -> None:
        """Say what happens to the job of these nodes."""

        def lost(name: str, why: str) -> None:
            for node in nodes:
                if node.name == name:
                    node.give_up()
            self._leases.lose(held, name, why)

        def over(why: str) -> None:
            now = self._leases.find(held.id)
            others = () if isinstance(now, Lost) else set(now.nodes) - set(nodes)
            for node in nodes if others else ():
                lost(node.name, why)
            if not others:
                self._leases.end(held, f"early: {why}")

        nodes[0].allocation.watch(lost, over)

    def _give_back(self, nodes: Collection[Node]) -> None:
        """Of a job some of whose nodes stay held, only these."""
        given = [node for node in nodes if isinstance(node, SlurmNode)]
        for allocation in {node.allocation for node in given}:
            allocation.release({node.name for node in given if node.allocation is allocation})
        for node in given:
            node.close()

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
