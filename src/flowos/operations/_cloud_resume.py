"""Machines for nodes that Slurm powers up; nodes that get none are said, and given back later."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex

from flowos.drivers.allocators.slurm_power import reason_for, refused_step
from flowos.engine import Machines, now, open_cloud, utc_of
from flowos.model import Cloud, CloudAction, CloudRefusal, FlowosError, SliceRefused, Vm, VmOrder
from flowos.operations._cloud_acting import Acting
from flowos.operations._cloud_tables import CloudNodes, RefusedNode
from flowos.plan import left_over, nonce_at, superseded

_AT_ONCE = 8
_LOOK_SECONDS = 5.0


def make_machines(share: CloudNodes, act: Acting) -> tuple[list[RefusedNode], bool]:
    """The nodes of a table that get no machine; and whether all others keep theirs."""
    try:
        failed, all_kept = _made(share, act)
    except FlowosError as error:
        failed, all_kept = dict.fromkeys(share.nodes, str(error)), True
    seconds = share.cloud.retry_seconds
    refused = [RefusedNode(node=n, why=why, retry_seconds=seconds) for n, why in failed.items()]
    return refused, all_kept


def _made(share: CloudNodes, act: Acting) -> tuple[dict[str, str], bool]:
    """Nodes for which no machine could be made, and why; and whether all others keep theirs."""
    cloud, machines = share.cloud, open_cloud(share.cloud)
    cluster, nonce = act.cluster(cloud), nonce_at(time.time(), token_hex(4))
    found = machines.existing(cluster)
    if isinstance(found, CloudRefusal):
        return dict.fromkeys(share.nodes, f"{cloud.name}: {found}"), True
    failed = {}
    for vm in left_over(share.nodes, found, nonce):
        if refusal := act.end(machines, vm, "left from before"):
            failed[vm.node] = f"{cloud.name}: machine {vm.id} of before runs on: {refusal}"
    orders = [
        VmOrder(cluster=cluster, node=node, nonce=nonce)
        for node in share.nodes
        if node not in failed
    ]
    if act.dry_run:
        _say_orders(orders, cloud, act)
        return failed, True
    made, refusals = _created(orders, machines, act)
    all_kept = not made or _end_late(made, cluster, machines, act)
    failed |= {node: f"{cloud.name}: {refusal}" for node, refusal in refusals.items()}
    return failed, all_kept


def _say_orders(orders: list[VmOrder], cloud: Cloud, act: Acting) -> None:
    where = " ".join(filter(None, (cloud.size, cloud.region))) or cloud.driver
    for order in orders:
        act.say(CloudAction(what="create", node=order.node, why=where))


def _created(
    orders: list[VmOrder], machines: Machines, act: Acting
) -> tuple[list[Vm], dict[str, CloudRefusal]]:
    """Several at once. After a refusal no more are asked for: the answer would be the same."""
    made: list[Vm] = []
    refusals: dict[str, CloudRefusal] = {}
    first: list[CloudRefusal] = []

    def create(order: VmOrder) -> None:
        since = now()
        answer = first[0] if first else machines.create(order)
        if isinstance(answer, CloudRefusal):
            first.append(answer)
            refusals[order.node] = answer
            return
        took = now() - since
        act.say(CloudAction(what="create", node=order.node, vm=answer.id, seconds=took))
        try:
            act.announce(answer)
            made.append(answer)
        except SliceRefused as error:
            refusals[order.node] = CloudRefusal("unknown", f"Slurm takes no address: {error}")
            act.end(machines, answer, "Slurm takes no address")

    with ThreadPoolExecutor(_AT_ONCE) as several:
        list(several.map(create, orders))
    return made, refusals


def _end_late(made: list[Vm], cluster: str, machines: Machines, act: Acting) -> bool:
    """Of a request that took so long that Slurm has given up on it, or has made another one.

    False if a node is left without a machine.
    """
    all_kept = True
    states = act.slurm.states()
    there = machines.existing(cluster)
    for vm in made:
        state = states.get(vm.node)
        if not isinstance(there, CloudRefusal) and superseded(vm, there):
            act.end(machines, vm, "its node has a later one")
        elif state is not None and not state.owns_machine:
            act.end(machines, vm, "its node was powered down meanwhile")
            all_kept = False
    return all_kept


class RefusedNodes:
    """Nodes that are out because there is no machine for them, until they are due."""

    def __init__(self, act: Acting) -> None:
        self._act = act
        self._out: dict[str, tuple[str, float]] = {}
        """Reason, and when it is due."""

    def add(self, refused: RefusedNode, took: float) -> None:
        """Say it in Slurm, and take the node out."""
        action = CloudAction(what="refuse", node=refused.node, why=refused.why, seconds=took)
        self._act.say(action)
        if self._act.dry_run:
            return
        again_at = utc_of(time.time() + refused.retry_seconds)
        self._act.slurm.refuse(refused.node, refused.why, again_at)
        due = now() + refused.retry_seconds
        self._out[refused.node] = reason_for(refused.why, again_at), due

    def await_return(self) -> None:
        """Give each back when it is due, unless a person did. Until then its reason stays."""
        while self._out:
            left = min(due for _, due in self._out.values()) - now()
            threading.Event().wait(min(max(left, 0.0), _LOOK_SECONDS))
            try:
                states = self._act.slurm.states()
                for node in tuple(self._out):
                    reason, due = self._out[node]
                    step = refused_step(states.get(node), reason, due=due <= now())
                    self._do(step, node, reason)
            except SliceRefused:  # Slurm restarts
                threading.Event().wait(_LOOK_SECONDS)

    def _do(self, step: str, node: str, reason: str) -> None:
        if step == "say":
            self._act.slurm.say(node, reason)
        elif step == "back":
            self._act.give_back(node, reason)
        if step in ("back", "leave"):
            del self._out[node]
