"""`flowos pools`: where nodes come from, as flowos.toml says."""

import argparse
from typing import TYPE_CHECKING

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, top_command

if TYPE_CHECKING:
    from flowos.model import Pool
    from flowos.operations.settings import PoolState


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "pools",
        "flowos pools --check",
        codes="0, and with --check 1 if a pool cannot be used",
    )
    command.add_argument(
        "--check", action="store_true", help="ask each pool for its nodes, as they are now"
    )
    command.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of flowos.toml, and end"
    )
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.model import settings_schema
    from flowos.operations.settings import pools
    from flowos.operations.settings_file import settings_file

    if args.schema:
        print_json(settings_schema())
        return 0
    found = pools(check=args.check)
    if args.json:
        print_json([_plain(state) for state in found])
    else:
        print(f"# {settings_file() or 'no flowos.toml: the pool that is always there'}")
        for state in found:
            print(*_lines(state), sep="\n")
    return 1 if any(state.refused for state in found) else 0


def _plain(state: "PoolState") -> dict[str, object]:
    return {"pool": state.pool, "nodes": state.nodes, "refused": state.refused or None}


def _of_the_cluster(pool: "Pool") -> tuple[tuple[str, str], ...]:
    return (
        ("partition", pool.partition),
        ("account", pool.account),
        ("qos", pool.qos),
        ("constraint", pool.constraint),
        ("gres", pool.gres),
        ("shared", pool.shared),
        ("scratch", pool.scratch),
    )


def _lines(state: "PoolState") -> list[str]:
    pool = state.pool
    words = [pool.name, pool.kind, f"{pool.nodes} node{'s' * (pool.nodes > 1)}"]
    words += [f"{pool.cores} cores each"] * (pool.cores is not None)
    if pool.max_seconds is not None:
        words.append(f"{pool.max_seconds:g} s at most")
    words += [f"in {pool.env}"] * (pool.env != "bare")
    words += [f"{name} {value}" for name, value in _of_the_cluster(pool) if value]
    if pool.price is not None:
        words.append(f"{pool.price.per_node_hour:g} {pool.price.currency} a node and hour")
    lines = ["  ".join(words)]
    lines += [f"  cannot be used: {state.refused}"] * bool(state.refused)
    for node in state.nodes:
        devices = [f"{count} {name}" for name, count in node.devices if name != "gpu"]
        words = [node.name, f"{node.cores} cores", f"{node.gpus} GPUs", *devices, node.state]
        lines.append("  " + "  ".join(words))
    return lines
