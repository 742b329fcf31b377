"""`flowos compare --axis machine` and `--axis time`: many runs that are alike."""

import argparse

from flowos.cli._output import print_folded, print_json
from flowos.model import UsageError

AXES = ("machine", "time")


def compare_many(args: argparse.Namespace, only: tuple[str, ...]) -> int:
    """Show which machines are slow, or what changed over time; 1 if that is for the worse."""
    for option, value in (("--margin", args.margin), ("--base", args.base), ("--all", args.all)):
        if value:
            raise UsageError(f"{option}: not with --axis {args.axis}")
    return (_slow if args.axis == "machine" else _changes)(args, only)


def _slow(args: argparse.Namespace, only: tuple[str, ...]) -> int:
    from flowos.operations.machines import slow_among
    from flowos.plan import SLOW_ERROR
    from flowos.report import slow_text

    error = args.error or SLOW_ERROR
    found = slow_among(args.run_ids, args.store, limit=args.limit, only=only, error=error)
    print_json(found) if args.json else print_folded(slow_text(found, error), end="")
    return int(bool(found.slow))


def _changes(args: argparse.Namespace, only: tuple[str, ...]) -> int:
    from flowos.operations.machines import changes_of
    from flowos.plan import CHANGE_ERROR
    from flowos.report import changes_text

    error = args.error or CHANGE_ERROR
    found = changes_of(args.run_ids, args.store, limit=args.limit, only=only, error=error)
    if args.json:
        print_json(found)
    else:
        print_folded(changes_text(found.machine, found.runs, found.numbers, error), end="")
    return int(found.worse)
