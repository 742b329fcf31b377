"""`flowos cloud`: machines of a cloud for the nodes that Slurm powers up and down."""

import argparse
import sys
from typing import TYPE_CHECKING

from flowos.cli._commands import FAILED
from flowos.cli._output import print_folded, print_json
from flowos.cli._shared import add_json, number, positive, top_command, with_example
from flowos.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from flowos.model import CloudAction, VmSize

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: "Commands") -> None:
    cloud = top_command(commands, "cloud", "flowos cloud reconcile --dry-run")
    commands = cloud.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    _add_power(
        commands,
        "resume",
        "make a machine for each node: Slurm's ResumeProgram",
        "flowos cloud resume c[1-4] --dry-run",
    )
    _add_power(
        commands,
        "suspend",
        "end the machines of nodes: Slurm's SuspendProgram",
        "flowos cloud suspend c3 --wait",
    )
    _add_reconcile(commands)
    _add_sizes(commands)


def _add_power(commands: "Commands", name: str, about: str, example: str) -> None:
    command = with_example(commands, name, about, example)
    command.add_argument("nodes", metavar="NODES", help="nodes as Slurm lists them, as in c[1-4]")
    command.add_argument(
        "--wait",
        action="store_true",
        help="do it in this process, and end when it is done; else it goes on in the background",
    )
    _add_output(command)


def _add_reconcile(commands: "Commands") -> None:
    from flowos.plan import ORPHAN_SECONDS

    command = with_example(
        commands,
        "reconcile",
        "end machines that no node owns, and give back nodes that are to be tried anew: for cron",
        "flowos cloud reconcile --dry-run",
    )
    command.add_argument(
        "nodes", metavar="NODES", nargs="?", default="", help="of these nodes only (default: all)"
    )
    command.add_argument(
        "--min-age",
        type=_seconds,
        default=ORPHAN_SECONDS,
        metavar="SECONDS",
        help="younger machines stay, as Slurm may not count them yet (default: %(default)g)",
    )
    _add_output(command)


def _add_sizes(commands: "Commands") -> None:
    command = with_example(
        commands,
        "sizes",
        "sizes of machines with their prices on one day, the cheapest first",
        "flowos cloud sizes --gpus 1 --region us-east-1",
    )
    command.add_argument("--region", default="", metavar="REGION", help="in this region only")
    for name, of in (("vcpus", "vCPUs"), ("gpus", "GPUs"), ("memory", "GiB of memory")):
        command.add_argument(
            f"--{name}", type=positive, default=0, metavar="N", help=f"with N {of} at least"
        )
    add_json(command)


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dry-run", action="store_true", help="show what would be done, do nothing"
    )
    add_json(command)


def _seconds(word: str) -> float:
    return number(word, "seconds, from 0 to below 1e9", lambda given: 0 <= given < 1e9)


def run(args: argparse.Namespace) -> int:
    if args.subcommand == "sizes":
        return _show_sizes(args)
    if args.subcommand != "reconcile" and not (args.wait or args.dry_run):
        return _start(args.subcommand, args.nodes, as_json=args.json)
    from flowos.operations import cloud

    show = _shower(as_json=args.json, dry_run=args.dry_run)
    if args.subcommand == "reconcile":
        done = cloud.reconcile(args.nodes, show, min_age=args.min_age, dry_run=args.dry_run)
    else:
        power = {"resume": cloud.resume, "suspend": cloud.suspend}[args.subcommand]
        done = power(args.nodes, show, dry_run=args.dry_run)
    return 0 if done else FAILED


def _show_sizes(args: argparse.Namespace) -> int:
    from flowos.operations.settings_file import load_settings
    from flowos.operations.vm_sizes import fitting_sizes

    least = {"vcpus": args.vcpus, "gpus": args.gpus, "memory_bytes": args.memory << 30}
    found = fitting_sizes(load_settings().sizes, region=args.region, **least)
    if args.json:
        print_json(list(found))
        return 0
    for size in found:
        print_folded(_size_line(size))
    for source in sorted({size.source for size in found if size.source}):
        print_folded(f"# {source}")
    if not found:
        print("no size of the catalogue has all of that")
    return 0


def _size_line(vm: "VmSize") -> str:
    from flowos.report import size

    vcpus = counted(vm.vcpus, "vCPU") if vm.vcpus else ""
    memory = size(vm.memory_bytes) if vm.memory_bytes else ""
    gpus = f"{vm.gpus} {vm.gpu}" if vm.gpus else ""
    network = "" if vm.network_bytes is None else f"{vm.network_bytes * 8e-9:g} Gbit/s"
    price = "" if vm.price is None else f"{vm.price:9.4f} {vm.currency}/h"
    spot = "" if vm.spot is None else f"spot {vm.spot:.4f}"
    return (
        f"{vm.cloud:6}{vm.name:26}{vcpus:>10}{memory:>10}  "
        f"{gpus:11}{network:>12}  {vm.region:15}{price:15}  {spot}"
    ).rstrip()


def _start(what: str, nodes: str, *, as_json: bool) -> int:
    from flowos.operations.cloud_background import in_background

    work = in_background(what, nodes)
    if as_json:
        print_json(work)
    else:
        print(f"{what} {nodes}: goes on as process {work.pid}, see {work.log}")
    return 0


def _shower(*, as_json: bool, dry_run: bool) -> "Callable[[CloudAction], None]":
    """Shows each action as it is done, in JSON one a line."""

    def show(action: "CloudAction") -> None:
        if as_json:
            print_json(action, indent=None)
        else:
            print(f"{'would: ' if dry_run else ''}{_line(action)}")
        sys.stdout.flush()

    return show


def _line(action: "CloudAction") -> str:
    took = "" if action.seconds is None else f" in {action.seconds:.2f} s"
    says = {
        "create": f"machine {action.vm or action.why} made{took}",
        "end": f"machine {action.vm} ended{took}: {action.why}",
        "keep": f"machine {action.vm} runs on: {action.why}"
        if action.vm
        else f"it is not known whether a machine runs: {action.why}",
        "refuse": f"no machine: {action.why}",
        "back": f"given back to Slurm: {action.why}",
    }
    return f"{action.node}: {says[action.what]}"
