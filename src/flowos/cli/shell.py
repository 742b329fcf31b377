"""`flowos shell`: a person's shell in an image."""

import argparse
from functools import partial

from flowos.cli._foreground import add_foreground, run_or_show, words_after_dashes
from flowos.cli._shared import top_command


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "shell",
        "flowos shell --env image.sqfs --bind /data:/data:ro",
    )
    add_foreground(command)
    command.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- [ARG...]")


def run(args: argparse.Namespace) -> int:
    from flowos.operations.exec import shell_command

    complete = partial(shell_command, word=args.env or "")
    return run_or_show(args, words_after_dashes(args.argv), complete)
