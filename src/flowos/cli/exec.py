"""`flowos exec`: one command, bare or in an image."""

import argparse

from flowos.cli._foreground import add_foreground, run_or_show, words_after_dashes
from flowos.cli._ranks import add_ranks, with_ranks
from flowos.cli._shared import top_command
from flowos.model import UsageError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "exec",
        "flowos exec --env image.sqfs -- python3 train.py",
    )
    add_foreground(command)
    add_ranks(command)
    command.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND [ARG...]")


def run(args: argparse.Namespace) -> int:
    argv = words_after_dashes(args.argv)
    if not argv:
        raise UsageError("no command; name one: flowos exec --env IMAGE -- COMMAND")
    if not argv[0]:
        raise UsageError("the command is an empty word: is a variable unset?")
    return run_or_show(args, argv, lambda request: with_ranks(args, request))
