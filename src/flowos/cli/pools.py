"""`flowos pools`: where nodes come from, as flowos.toml says."""

import argparse
from typing import TYPE_CHECKING

from flowos.cli._output import print_folded, print_json
from flowos.cli._shared import add_json, add_store, top_command
from flowos.model import counted

if TYPE_CHECKING:
    from flowos.model import Pool, PoolUser, Promise, VmSize
    from flowos.operations.pools import PoolState


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "pools",
        "flowos pools --check gpu",
    )
    command.add_argument("name", nargs="?", metavar="POOL", help="this pool alone (default: all)")
    command.add_argument(
        "--check",
        action="store_true",
        help="ask each pool for its nodes as they are now, its users, its storage (that of nodes on"
        " one that is free), and compare with what their size and the settings promise",
    )
    command.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of flowos.toml, and end"
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.model import settings_schema
    from flowos.operations.pools import pools
    from flowos.operations.settings_file import settings_names

    if args.schema:
        print_json(settings_schema())
        return 0
    found = pools(args.name, check=args.check, url=args.store)
    if args.json:
        print_json([_plain(state) for state in found])
    else:
        print(f"# {settings_names() or 'no flowos.toml: the pool that is always there'}")
        for state in found:
            print_folded("\n".join(_lines(state)))
    return 1 if any(state.refused for state in found) else 0


def _plain(state: "PoolState") -> dict[str, object]:
    return {
        "pool": state.pool,
        "nodes": state.nodes,
        "refused": state.refused or None,
        "users": state.users,
        "not_accounted": state.not_accounted or None,
        "storage": state.storage,
        "size": state.size,
        "promises": dict(state.promises),
    }


def _lines(state: "PoolState") -> list[str]:
    from flowos.report import storage_lines

    pool = state.pool
    words = [pool.name, pool.kind, counted(pool.nodes, "node")]
    words += [f"{counted(pool.cores or 0, 'core')} each"] * (pool.cores is not None)
    if pool.max_seconds is not None:
        words.append(f"{pool.max_seconds:g} s at most")
    words += [f"in {pool.env}"] * (pool.env != "bare")
    words += [f"{name} {value}" for name, value in pool.of_its_kind]
    if pool.price is not None and pool.price.per_node_hour is not None:
        words.append(f"{pool.price.per_node_hour:g} {pool.price.currency} a node and hour")
    lines = ["  ".join(words)]
    lines += [f"  {_vm_size(state.size)}"] if state.size else []
    lines += [f"  cannot be used: {state.refused}"] * bool(state.refused)
    for node in state.nodes:
        devices = [f"{count} {name}" for name, count in node.devices if name != "gpu"]
        words = [node.name, counted(node.cores, "core"), counted(node.gpus, "GPU")]
        words += [*devices, node.state]
        lines.append("  " + "  ".join(words))
    lines += [f"  {words}" for words in _promises(state)]
    lines += [f"  {line}" for each in state.storage for line in storage_lines(each)]
    lines += [f"  {_user(each, pool)}" for each in state.users]
    lines += [f"  what users have used is not known: {state.not_accounted}"] * bool(
        state.not_accounted
    )
    return lines


def _vm_size(vm: "VmSize") -> str:
    from flowos.report import size

    amounts = [counted(vm.vcpus, "vCPU")] if vm.vcpus else []
    amounts += [size(vm.memory_bytes)] if vm.memory_bytes else []
    amounts += [f"{vm.gpus} {vm.gpu}" if vm.gpu else counted(vm.gpus, "GPU")] if vm.gpus else []
    amounts += [f"{vm.network_bytes * 8e-9:g} Gbit/s"] if vm.network_bytes else []
    words = [f"size {vm.name}", *filter(None, (vm.cloud, vm.region)), *amounts]
    words += [f"{vm.price:g} {vm.currency}/h"] if vm.price is not None else []
    words += [f"spot {vm.spot:g}"] if vm.spot is not None else []
    return "  ".join(words) + (f"  ({vm.source})" if vm.source else "")


def _promises(state: "PoolState") -> list[str]:
    """What nodes have less of than their size promises, or that none has."""
    broken = [
        f"{node}: {', '.join(_promise(each) for each in promises if not each.is_kept)}"
        for node, promises in state.promises
        if any(not each.is_kept for each in promises)
    ]
    if broken or not any(promises for _, promises in state.promises):
        return broken
    nodes = f"all {len(state.promises)} nodes have" if len(state.promises) > 1 else "its node has"
    return [f"{nodes} what {state.pool.size} promises"]


def _promise(promise: "Promise") -> str:
    from flowos.report import size

    what = promise.what.removeprefix("bytes of ")
    amounts: list[object] = [promise.promised, promise.seen]
    if what != promise.what:
        amounts = [size(promise.promised), size(promise.seen)]
    half = " (one of two threads a core?)" * (
        what == "vCPUs" and 2 * promise.seen == promise.promised
    )
    return f"{what}: {amounts[0]} promised, {amounts[1]} seen{half}"


def _user(user: "PoolUser", pool: "Pool") -> str:
    has = f"{counted(user.nodes, 'node')}, {counted(user.cores, 'core')}"
    words = [f"holds {has}"] if user.jobs else []
    words += [counted(user.waiting, "waiting job")] * bool(user.waiting)
    if user.node_seconds is not None:
        hours = user.node_seconds / 3600
        words.append(f"{hours:.2f} node-hours in 7 days")
        if pool.price is not None and pool.price.per_node_hour is not None:
            words.append(f"{hours * pool.price.per_node_hour:.2f} {pool.price.currency}")
    return f"user {user.name}  {'  '.join(words)}"
