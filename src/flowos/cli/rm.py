"""`flowos rm`: delete kept runs."""

import argparse

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, add_store, top_command
from flowos.model import counted


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "rm", "flowos rm --dry-run 2026-11-20-3fa2c1")
    command.add_argument(
        "run_ids", nargs="+", metavar="RUN", help="a run's id, its beginning, or `last`"
    )
    command.add_argument(
        "--dry-run", action="store_true", help="show what would be deleted, delete nothing"
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    """All the runs named are deleted, or, where one of them is not there, none."""
    from flowos.operations import stored_runs

    gone = stored_runs.removed(tuple(args.run_ids), args.store, dry_run=args.dry_run)
    if args.json:
        print_json(gone)
        return 0
    done = "would delete" if args.dry_run else "deleted"
    for each in gone:
        print(f"{done} {each.id}  {each.host}  {counted(each.samples, 'sample')}")
    return 0
