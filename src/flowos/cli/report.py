"""`flowos report`: a kept run as a page, CSV, JSON, Markdown, metrics and Parquet."""

import argparse
from pathlib import Path

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, add_run, add_store, top_command


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "report",
        "flowos report last --out page/",
    )
    add_run(command)
    command.add_argument(
        "--out", type=Path, default=Path("flowos-report"), metavar="DIR", help="folder to write to"
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
    from flowos.operations import history
    from flowos.report import json_schema

    if args.schema:
        print_json(json_schema())
        return 0
    files = history.rewritten(args.run_id, args.store, args.out, parquet=args.parquet)
    print_json(files) if args.json else print(*files, sep="\n")
    return 0
