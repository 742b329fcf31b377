"""`flowos results`: results of tasks that are kept in a journal, or in the user's cache."""

import argparse
from pathlib import Path

from flowos.cli._output import note, print_folded, print_json
from flowos.cli._shared import add_json, top_command
from flowos.model import counted

_MAX_DAYS = 1e6


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "results", "flowos results sweep --prune 30")
    command.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help="the journal of a slice (default: what tasks with cache=True keep)",
    )
    command.add_argument(
        "--prune",
        type=_days,
        metavar="DAYS",
        help="remove results that are older than this; 0 removes all",
    )
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.results import kept_results

    found = kept_results(args.folder, args.prune)
    for words in found.notes:
        note(f"flowos results: {words}")
    if args.json:
        print_json(found)
        return 0
    if args.prune is not None:
        were = "was" if found.removed == 1 else "were"
        print_folded(f"{counted(found.removed, 'result')} {were} removed from {found.path}")
    for task in found.tasks:
        megabytes = f"{task.size_bytes / 1e6:.3f} MB"
        when = f"{task.oldest} to {task.newest}"
        print_folded(f"{task.results:8}  {megabytes:>14}  {when}  {task.task}")
    if not found.tasks:
        print_folded(f"no results are kept in {found.path}")
    return 0


def _days(word: str) -> float:
    try:
        days = float(word)
    except ValueError:
        days = -1.0
    if not 0 <= days < _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a number of days, 0 or more")
    return days
