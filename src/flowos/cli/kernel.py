"""`flowos kernel`: kernels with which images are booted."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from flowos._dataclasses import replace
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
    _add_publish(commands)


def _add_publish(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = with_example(
        commands,
        "publish",
        "write what whole nodes need to boot a kernel with an image: kernel, initrd, scripts",
        "flowos kernel publish stock node --out /srv/boot --url http://head/boot "
        "--redfish 'https://{node}-bmc'",
    )
    command.add_argument("name", metavar="NAME", help="a kernel of your library")
    command.add_argument("image", metavar="IMAGE", help="a name, or a squashfs")
    command.add_argument(
        "--out",
        required=True,
        metavar="FOLDER",
        help="what a web server shows; all is written to FOLDER/NAME",
    )
    command.add_argument("--url", default="", metavar="URL", help="where nodes find FOLDER")
    command.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="WORD",
        help="for the kernel's command line, as console=ttyS0,115200",
    )
    command.add_argument(
        "--init",
        default="",
        metavar="PROGRAM",
        help="first process, of the image (default: /sbin/init)",
    )
    _add_services(command)
    _add_dry_run(command)


def _add_services(command: argparse.ArgumentParser) -> None:
    """By which nodes are booted."""
    command.add_argument(
        "--boot-by",
        choices=("ipxe", "warewulf", "openchami"),
        default="ipxe",
        help="what next-boot speaks to: iPXE scripts in FOLDER/nodes (default), wwctl, or BSS",
    )
    command.add_argument("--bss", default="", metavar="URL", help="OpenCHAMI's boot script service")
    command.add_argument(
        "--redfish",
        default="",
        metavar="URL",
        help="of the BMC of {node}: also write power-cycle, and Slurm's RebootProgram",
    )
    command.add_argument(
        "--system", default="", metavar="PATH", help="there (default: /redfish/v1/Systems/1)"
    )
    command.add_argument(
        "--settings",
        default="",
        metavar="FOLDER",
        help="of redfish.curl and bss.curl, with credentials (default: /etc/flowos)",
    )
    command.add_argument(
        "--helper",
        default="",
        metavar="PATH",
        help="where nodes will have `helper`, for Slurm (default: /usr/local/sbin/flowos-kernel)",
    )


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
    elif args.subcommand == "publish":
        _publish(args)
    else:
        kernel = remove_kernel(args.name, dry_run=args.dry_run)
        did = "would be removed" if args.dry_run else "removed"
        _show(args, to_json(kernel), [f"{did}: {_line(kernel)}"])
    return 0


def _publish(args: argparse.Namespace) -> None:
    from flowos.drivers.netboot import Netboot
    from flowos.operations.kernel_publish import publish_kernel

    defaults = Netboot(name=args.name, release="", root=args.out)
    asked = replace(
        defaults,
        url=args.url,
        parameters=tuple(args.parameter),
        init=args.init,
        helper=args.helper or defaults.helper,
        boot_by=args.boot_by,
        bss=args.bss,
        redfish=args.redfish,
        system=args.system or defaults.system,
        settings=args.settings or defaults.settings,
    )
    done = publish_kernel(asked, args.image, dry_run=args.dry_run)
    did = "would be published" if args.dry_run else "published"
    line = f"{did}: {done.name}  {done.release} with {done.image}, in {done.folder}"
    notes = [f"note: {note}" for note in done.notes]
    _show(args, to_json(done), [line, f"  {' '.join(done.files)}", *notes])


def _show(args: argparse.Namespace, value: object, lines: list[str]) -> None:
    if args.json:
        print_json(value)
    else:
        print("\n".join(lines))


def _line(kernel: "LinuxKernel") -> str:
    return " ".join((f"{kernel.name}  {kernel.release}", *kernel.parameters))
