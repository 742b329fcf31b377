"""`flowos show`: a kept run, or a process, in the terminal."""

import argparse

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, add_run, add_store, top_command


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "show", "flowos show last")
    add_run(command)
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations import history
    from flowos.operations.processes import is_process, process
    from flowos.report import json, text

    if is_process(args.run_id):
        from flowos.cli.ps import lines

        found = process(args.run_id)
        print_json(found) if args.json else print(*lines(found), sep="\n")
        return 0
    book = history.book(args.run_id, args.store)
    print(json(book) if args.json else text(book))
    return 0
