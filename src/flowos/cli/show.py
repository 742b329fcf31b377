"""`flowos show`: a kept run, in the terminal."""

import argparse

from flowos.cli._shared import add_json, add_run, add_store, with_example


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = with_example(commands, "show", "a kept run, in the terminal", "flowos show last")
    add_run(command)
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations import history
    from flowos.report import json, text

    book = history.book(args.run_id, args.store)
    print(json(book) if args.json else text(book))
    return 0
