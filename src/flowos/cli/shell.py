"""`flowos shell`: a person's shell in an image."""

import argparse

from flowos.cli._foreground import add_foreground, run_or_show, words_after_dashes
from flowos.cli._shared import with_example


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = with_example(
        commands,
        "shell",
        "work in an environment: its bash, or else the shell that it has",
        "flowos shell --env image.sqfs --bind /data:/data:ro",
    )
    add_foreground(command)
    command.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- [ARG...]")


def run(args: argparse.Namespace) -> int:
    from flowos.operations.exec import shell_wish

    return run_or_show(args, words_after_dashes(args.argv), shell_wish)
