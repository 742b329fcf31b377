"""A pool of a cluster: its nodes are those of jobs, which end when they are freed."""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from flowos._dataclasses import replace
from flowos.engine._leases import Leases, new_slice_id
from flowos.engine._node import Node
from flowos.engine._provider import NEVER, CancelToken, Held, HoldEvent, OnHoldEvent, ignore
from flowos.engine.cluster._cluster_node import ClusterNode
from flowos.engine.cluster._held_job import HeldJob
from flowos.engine.cluster._shared_folder import base_while_held, refuse_blind, shown
from flowos.engine.launch._session import LaunchSession
from flowos.model import Ask, Lost, NodeInfo, Pool, SliceRefused, counted


class ClusterProvider:
    """See `Provider`. Nodes that are added to a slice are those of a job of their own.

    Of a resource manager are `_checked`, `_begun` and `_nodes_of`.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._session = LaunchSession()
        self._leases = Leases(pool, self._give_back)
        self._asks: dict[str, Ask] = {}
        self._jobs: dict[str, int] = {}

    def nodes(self) -> tuple[NodeInfo, ...]:
        return self._checked(Ask(nodes=self.pool.nodes, seconds=self.pool.max_seconds))

    def check(self, ask: Ask) -> None:
        self._possible(ask)

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore, cancel: CancelToken = NEVER) -> Held:
        ask = replace(ask, id=ask.id or new_slice_id(self.pool))
        limited = self._before(ask)
        nodes = self._allocated(ask, on_event, cancel)
        try:
            return self._begin(nodes, ask, limited, on_event)
        except BaseException:
            nodes[0].allocation.free()
            raise

    def resize(
        self, held: Held, nodes: int, cancel: CancelToken = NEVER, on_event: OnHoldEvent = ignore
    ) -> Held:
        now = self._leases.now(held)
        missing = nodes - len(now.nodes)
        if nodes < 1:
            raise SliceRefused(
                f"slice {held.id}: {counted(nodes, 'node')} asked for; free it instead"
            )
        if missing > 0:
            ask = self._asks[held.id]
            if ask.lease_seconds is not None:
                raise SliceRefused(f"slice {held.id}: it has a lease, and gets no more nodes")
            self._possible(replace(ask, nodes=nodes, seconds=None))
            id = f"{held.id}-{self._jobs[held.id] + 1}"
            more = self._allocated(replace(ask, nodes=missing, id=id), on_event, cancel, now.nodes)
            changed = self._leases.add(now, more)
            self._jobs[held.id] += 1
            self._watch(held, more)
            return changed
        return self.give_back(now, {node.name for node in now.nodes[nodes:]})

    def give_back(self, held: Held, names: Collection[str]) -> Held:
        now = self._leases.now(held)
        for allocation in {node.allocation for node in of_jobs(now.nodes)}:
            its = {node.name for node in allocation.nodes}
            if not allocation.is_divisible and its & {*names} and its - {*names}:
                together = ", ".join(sorted(its))
                raise SliceRefused(
                    f"slice {held.id}: {together} are of one job and are given back together"
                )
        return self._leases.give_back(held, names)

    def free(self, held: Held) -> None:
        self._leases.free(held)
        self._asks.pop(held.id, None)
        self._jobs.pop(held.id, None)

    def leave(self, held: Held) -> None:
        self.free(held)

    def attach(self, id: str, on_event: OnHoldEvent = ignore) -> Held | Lost:  # noqa: ARG002
        return self._leases.find(id)

    def _checked(self, ask: Ask) -> tuple[NodeInfo, ...]:
        """The nodes as they are now. Raises SliceRefused for what can never be had of them."""
        raise NotImplementedError

    def _begun(
        self,
        ask: Ask,
        on_event: OnHoldEvent,
        cancel: CancelToken,
        proof: Path,
        held: tuple[str, ...],
    ) -> HeldJob:
        """A job of this ask that runs, on none of the nodes that are held already.

        on_event: gets why it waits. proof: nodes read it.
        """
        raise NotImplementedError

    def _nodes_of(self, allocation: HeldJob, base: Path) -> tuple[ClusterNode, ...]:
        """base: where their run folders lie."""
        raise NotImplementedError

    def _possible(self, ask: Ask) -> Ask:
        """The same, or what is left of it. Raises SliceRefused if it cannot be had."""
        self._checked(ask)
        return ask

    def _before(self, ask: Ask) -> Ask:
        """As `_possible`, of what is about to be held."""
        return self._possible(ask)

    def _begin(
        self, nodes: Sequence[ClusterNode], ask: Ask, limited: Ask, on_event: OnHoldEvent
    ) -> Held:
        held = self._leases.begin(tuple(nodes), limited, on_event)
        self._asks[held.id] = ask
        self._jobs[held.id] = 1
        self._watch(held, nodes)
        return held

    def _allocated(
        self,
        ask: Ask,
        on_event: OnHoldEvent,
        cancel: CancelToken,
        held: Collection[Node] = (),
    ) -> tuple[ClusterNode, ...]:
        """held: nodes of the same slice, of other jobs."""
        try:
            with base_while_held(self.pool) as base:
                with shown(base) as (proof, word):
                    names = tuple(node.name for node in held)
                    allocation = self._begun(ask, on_event, cancel, proof, names)
                try:
                    refuse_blind(self.pool, base, word, allocation.nodes)
                    return self._nodes_of(allocation, base)
                except BaseException:
                    allocation.free()
                    raise
        except SliceRefused as error:
            raise self._refused(str(error)) from None

    def _watch(self, held: Held, nodes: Sequence[ClusterNode]) -> None:
        """Say what happens to the job of these nodes."""
        allocation = nodes[0].allocation

        def lost(name: str, why: str) -> None:
            for node in nodes:
                if node.name == name:
                    node.give_up()
            self._leases.lose(held, name, why)
            if not allocation.nodes:  # none is left with which its job would be given back
                allocation.free()

        def over(why: str) -> None:
            now = self._leases.find(held.id)
            others = () if isinstance(now, Lost) else set(now.nodes) - set(nodes)
            for node in nodes if others else ():
                lost(node.name, why)
            if not others:
                self._leases.end(held, why)
            nodes[0].say_over()

        allocation.watch(lost, over)

    def _give_back(self, nodes: Collection[Node]) -> None:
        """Of a job some of whose nodes stay held, only these."""
        given = of_jobs(nodes)
        for node in given:
            node.files.close()
        with ExitStack() as each:  # nodes are closed also if a job cannot be ended
            for node in given:
                each.callback(node.close)
            for allocation in {node.allocation for node in given}:
                its = {node.name for node in given if node.allocation is allocation}
                each.callback(allocation.release, its)

    def _refused(self, why: str) -> SliceRefused:
        return SliceRefused(f"pool {self.pool.name}: {why}")


def waits(on_event: OnHoldEvent) -> Callable[[str], None]:
    """What takes a reason for which nodes are waited for."""
    return lambda reason: on_event(HoldEvent(what="waiting", reason=reason))


def of_jobs(nodes: Collection[Node]) -> list[ClusterNode]:
    return [node for node in nodes if isinstance(node, ClusterNode)]
