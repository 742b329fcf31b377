"""`flowos cloud`: machines for the nodes that Slurm powers up, and none for those that it does not.

Slurm calls `resume` and `suspend`, which return at once: a process of its own does the work, says
in Slurm what a cloud refuses, and gives the node back later. `reconcile` mends what such a process
could not, or left when it was ended.
"""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from flowos.drivers.allocators.slurm_power import read_node_names
from flowos.engine import Machines, now, open_cloud, utc_of
from flowos.model import (
    Cloud,
    CloudAction,
    CloudError,
    CloudRefusal,
    FlowosError,
    Vm,
)
from flowos.operations._cloud_acting import Acting, OnAction
from flowos.operations._cloud_resume import RefusedNodes, make_machines
from flowos.operations._cloud_tables import (
    CloudNodes,
    RefusedNode,
    by_table,
    cloud_nodes,
    cloud_tables,
    stray_nodes,
)
from flowos.plan import ORPHAN_SECONDS, left_over, nonce_at, orphans, without_machine

_T = TypeVar("_T")
_LATEST = "~"
"""Sorts behind what is random in a nonce."""


def resume(hosts: str, on_action: OnAction, *, dry_run: bool = False) -> bool:
    """Make a machine for each node; True if all have one. It returns when all refused are back.

    What was left of these nodes is ended before: Slurm takes a machine only if it has just started.
    """
    nodes, act, since = read_node_names(hosts), Acting(on_action, dry_run=dry_run), now()
    refused = RefusedNodes(act)
    try:
        shares, without = by_table(nodes)
    except FlowosError as error:
        shares, without = (), [RefusedNode(node=node, why=str(error)) for node in nodes]
    for each in without:
        refused.add(each, now() - since)
    all_made = not without
    for share in shares:
        failed, all_kept = make_machines(share, act)
        for each in failed:
            refused.add(each, now() - since)
        all_made = all_made and all_kept and not failed
    refused.await_return()
    return all_made


def suspend(hosts: str, on_action: OnAction, *, dry_run: bool = False) -> bool:
    """End the machines of these nodes; True if none runs on.

    Those that a later request makes meanwhile stay.
    """
    nonce = nonce_at(time.time(), _LATEST)
    act = Acting(on_action, dry_run=dry_run)
    shares, without = by_table(read_node_names(hosts))
    ended = _all_done(lambda share: _suspended(share, nonce, act), shares)
    for each in without:
        raise CloudError(each.why)
    return ended


def _suspended(share: CloudNodes, nonce: str, act: Acting) -> bool:
    machines = open_cloud(share.cloud)
    found = machines.existing(act.cluster(share.cloud))
    if isinstance(found, CloudRefusal):
        for node in share.nodes:
            act.say(CloudAction(what="keep", node=node, why=f"{share.cloud.name}: {found}"))
        return False
    vms = left_over(share.nodes, found, nonce)
    return not any([act.end(machines, vm, "its node is powered down") for vm in vms])


def reconcile(
    hosts: str, on_action: OnAction, *, min_age: float = ORPHAN_SECONDS, dry_run: bool = False
) -> bool:
    """End machines that no node owns, older than `min_age` seconds, and give back nodes that are
    due, or whose machine is gone.

    hosts: of which nodes; "" for all. True if nothing runs on that should not. Slurm is asked after
    the cloud: of a node that was powered up meanwhile the machine stays.
    """
    act = Acting(on_action, dry_run=dry_run)
    clouds = cloud_tables()
    only = frozenset(read_node_names(hosts)) if hosts else None
    return _all_done(lambda cloud: _reconciled(cloud, clouds, only, act, min_age), clouds)


def _all_done(work: Callable[[_T], bool], tables: Iterable[_T]) -> bool:
    """Of each table. Raises the first CloudError, if any, once all were tried."""
    done, errors = [], []
    for table in tables:
        try:
            done.append(work(table))
        except CloudError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return all(done)


def _reconciled(
    cloud: Cloud,
    clouds: tuple[Cloud, ...],
    only: frozenset[str] | None,
    act: Acting,
    min_age: float,
) -> bool:
    machines, cluster = open_cloud(cloud), act.cluster(cloud)
    has, strays = cloud_nodes(cloud, clouds, only), stray_nodes(clouds, only)
    vms = _existing(cloud, machines, cluster)
    states = act.slurm.states()
    powered = [name for name, state in states.items() if state.owns_machine]
    ours = [vm for vm in vms if has(vm.node) or strays(vm.node)]
    found = orphans(ours, powered, time.time(), min_age)
    refusals = [act.end(machines, vm, why) for vm, why in found]
    nodes = [state for name, state in states.items() if has(name)]
    for state in nodes:
        if state.is_due(utc_of(time.time()), _local(time.time() - cloud.retry_seconds)):
            act.give_back(state.node, state.reason)
    lost = without_machine([state.node for state in nodes if state.is_up], vms)
    if lost:  # or it was not there yet when the cloud was asked
        for node in without_machine(lost, _existing(cloud, machines, cluster)):
            act.lose(node)
    return not any(refusals)


def _existing(cloud: Cloud, machines: Machines, cluster: str) -> tuple[Vm, ...]:
    found = machines.existing(cluster)
    if isinstance(found, CloudRefusal):
        raise CloudError(f"cloud.{cloud.name}: {found}")
    return found


def _local(seconds: float) -> str:
    """As Slurm prints times."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
