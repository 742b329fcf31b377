"""`flowos show`: a kept run, a process, or the log of a slice, in the terminal."""

import argparse
from pathlib import Path

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, add_run, add_store, top_command
from flowos.model import UsageError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "show", "flowos show last\n         flowos show tasks.log")
    add_run(command)
    command.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="of the log of a slice: write its timeline there, for chrome://tracing or Perfetto",
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations import history
    from flowos.operations.processes import is_process, process
    from flowos.report import json, text

    if Path(args.run_id).is_file():
        return _show_log(args)
    if args.trace is not None:
        raise UsageError("--trace takes the log of a slice: flowos show FILE.log --trace out.json")
    if is_process(args.run_id):
        from flowos.cli.ps import lines

        found = process(args.run_id)
        print_json(found) if args.json else print(*lines(found), sep="\n")
        return 0
    book = history.book(args.run_id, args.store)
    print(json(book) if args.json else text(book))
    return 0


def _show_log(args: argparse.Namespace) -> int:
    from flowos.operations.task_log import read_log, times_by_task, write_trace

    log = read_log(Path(args.run_id))
    if args.trace is not None:
        write_trace(log, args.trace)
    if args.json:
        print_json(log)
        return 0
    if not log:
        print(f"no task is in {args.run_id}")
    for times in times_by_task(log):
        failed = f"  {times.failed} failed" * bool(times.failed)
        moved = f"{times.bytes_in / 1e6:.3f} MB in  {times.bytes_out / 1e6:.3f} MB out"
        print(
            f"{times.runs:8} runs  {times.seconds:10.3f} s  longest {times.longest_seconds:.3f} s  "
            f"{moved}  {times.task}{failed}"
        )
    return 0
