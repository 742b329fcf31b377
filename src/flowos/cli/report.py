"""`flowos report`: a kept run as a page, CSV, JSON, Markdown, metrics; several side by side."""

import argparse
from pathlib import Path

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, add_store, given_path, top_command
from flowos.model import UsageError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "report",
        "flowos report last --out page/\n"
        "         flowos report last 2026-11-20-3fa2c1 from-alice/report.json --out both/",
    )
    command.add_argument(
        "run_ids",
        nargs="*",
        default=[],
        metavar="RUN",
        help="a run's id, its beginning, `last` (default), or a file report.json of another store;"
        " of several: a page on which they stand side by side, each compared with the first",
    )
    command.add_argument(
        "--out",
        type=given_path,
        default=Path("flowos-report"),
        metavar="DIR",
        help="folder to write to",
    )
    command.add_argument(
        "--parquet", action="store_true", help="also its table of numbers as report.parquet"
    )
    command.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of report.json, and end"
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations import history, side_by_side, usual
    from flowos.report import json_schema

    if args.schema:
        print_json(json_schema())
        return 0
    if len(args.run_ids) > 1:
        if args.parquet:
            raise UsageError("--parquet: of one run only")
        files = side_by_side.written_side_by_side(args.run_ids, args.store, args.out)
    else:
        (ref,) = args.run_ids or ("last",)
        report = usual.with_places(side_by_side.report_by(ref, args.store), args.store)
        files = history.rewritten(report, args.out, parquet=args.parquet)
    print_json(files) if args.json else print(*files, sep="\n")
    return 0
