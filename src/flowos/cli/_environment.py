"""The options by which a person describes an environment."""

import argparse
from typing import TYPE_CHECKING

from flowos.cli._shared import Once

if TYPE_CHECKING:
    from flowos.model import Environment


def add_environment(command: argparse.ArgumentParser, *, required: bool = False) -> None:
    command.add_argument(
        "--env",
        action=Once,
        required=required,
        metavar="IMAGE[@RUNTIME]",
        help="an image by path or name, to be entered by the best runtime here or by this one"
        + ("" if required else " (default: bare, on this machine)"),
    )
    command.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="SRC[:DST[:ro]]",
        help="show SRC of this machine inside, read-only with :ro; the current folder is always",
    )
    command.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="NAME",
        help="a device and its driver by CDI name, such as nvidia.com/gpu=0",
    )
    command.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable, in addition to those of the image",
    )


def environment_of(args: argparse.Namespace) -> "Environment":
    from flowos.operations.environment import environment

    return environment(args.env, binds=args.bind, devices=args.device, variables=args.var)


def environment_to_enter(args: argparse.Namespace) -> "Environment":
    """For one command: what results would be kept by is not read."""
    from flowos.operations.environment import environment_to_enter

    return environment_to_enter(args.env, args.bind, args.device, args.var)
