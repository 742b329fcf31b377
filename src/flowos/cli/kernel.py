"""`flowos kernel`: kernels with which images are booted."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, top_command, with_example
from flowos.model import to_json

if TYPE_CHECKING:
    from flowos.model import LinuxKernel


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    kernel = top_command(commands, "kernel", "flowos exec --env tools@qemu:kernel=NAME -- uname -r")
    commands = kernel.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    command = with_example(
        commands,
        "add",
        "unpack a kernel from a package of Debian, without root",
        "apt-get download linux-image-6.1.0-56-amd64 && "
        "flowos kernel add stock --deb linux-image-6.1.0-56-amd64_*.deb",
    )
    command.add_argument("name", metavar="NAME", help="what you call it")
    command.add_argument(
        "--deb", type=Path, required=True, metavar="FILE", help="a package linux-image-..."
    )
    command.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="WORD",
        help="for its command line, as isolcpus=1",
    )
    _add_dry_run(command)
    add_json(with_example(commands, "list", "the kernels in your library", "flowos kernel list"))
    command = with_example(commands, "rm", "remove one", "flowos kernel rm stock")
    command.add_argument("name", metavar="NAME", help="its name")
    _add_dry_run(command)


def _add_dry_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", help="show what it would do, do nothing")
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.kernel import add_kernel, kernels, remove_kernel

    if args.subcommand == "list":
        found = kernels()
        _show(args, to_json(found), [_line(kernel) for kernel in found] or ["no kernels yet"])
    elif args.subcommand == "add":
        kernel = add_kernel(args.name, args.deb, args.parameter, dry_run=args.dry_run)
        did = "would be added" if args.dry_run else "added"
        _show(args, to_json(kernel), [f"{did}: {_line(kernel)}"])
    else:
        kernel = remove_kernel(args.name, dry_run=args.dry_run)
        did = "would be removed" if args.dry_run else "removed"
        _show(args, to_json(kernel), [f"{did}: {_line(kernel)}"])
    return 0


def _show(args: argparse.Namespace, value: object, lines: list[str]) -> None:
    if args.json:
        print_json(value)
    else:
        print("\n".join(lines))


def _line(kernel: "LinuxKernel") -> str:
    return " ".join((f"{kernel.name}  {kernel.release}", *kernel.parameters))
