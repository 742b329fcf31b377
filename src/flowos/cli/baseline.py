"""`flowos baseline`: what stored runs give, and how far a new one may be off."""

import argparse
from pathlib import Path

from flowos.cli._output import note, print_folded, print_json
from flowos.cli._shared import (
    add_json,
    add_store,
    given_path,
    positive,
    probe_names,
    share_of_1,
    top_command,
)
from flowos.model import UsageError

_LARGEST = 1e6


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "baseline",
        "flowos baseline --out node.json && flowos measure --check node.json",
    )
    command.add_argument(
        "run_ids",
        nargs="*",
        metavar="RUN",
        help="runs of one machine, or of several of a kind; one: all that are like it, from"
        " whatever machine (default: all that are like the last)",
    )
    command.add_argument(
        "--out",
        type=given_path,
        default=Path("baseline.json"),
        metavar="FILE",
        help="where to write it (default baseline.json)",
    )
    command.add_argument(
        "--limit", type=positive, metavar="N", help="of the runs that are alike the newest N"
    )
    command.add_argument(
        "--only",
        metavar="PROBE,...",
        type=probe_names,
        default=(),
        help="what these probes measured only; fewer numbers have narrower tolerances",
    )
    command.add_argument(
        "--error",
        type=share_of_1,
        metavar="E",
        help="share of checks, at most, that find any number worse though the machine is like these"
        " (default 0.05)",
    )
    command.add_argument(
        "--max-tolerance",
        type=_tolerance,
        metavar="T",
        help="a number with a wider tolerance can be found worse, but does not pass (default 0.25)",
    )
    command.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.baseline import baseline_of, write_baseline
    from flowos.plan import CHECK_ERROR, MAX_TOLERANCE
    from flowos.report import baseline_text

    if args.error is not None and args.error >= 0.5:
        raise UsageError(f"--error {args.error}: give a share below 0.5")
    baseline = baseline_of(
        args.run_ids,
        args.store,
        limit=args.limit,
        only=args.only,
        error=args.error or CHECK_ERROR,
        max_tolerance=args.max_tolerance or MAX_TOLERANCE,
    )
    if not args.dry_run:
        write_baseline(baseline, args.out)
    print_json(baseline) if args.json else print_folded(baseline_text(baseline), end="")
    if not args.dry_run:
        note(f"written: {args.out}")
    return 0


def _tolerance(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 < number <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a share above 0, as 0.25")
    return number
