"""`flowos show`: a kept run, a process, or the log of a slice, in the terminal."""

import argparse
import sys
from pathlib import Path

from flowos.cli._output import note, print_folded, print_json, text_width
from flowos.cli._shared import add_json, add_run, add_store, top_command
from flowos.model import UsageError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "show",
        "flowos show last\n         flowos show tasks.log --html timeline.html",
    )
    add_run(command)
    command.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="of the log of a slice: write a page there, of what ran when on which worker",
    )
    command.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="of the log of a slice: write its timeline there, for chrome://tracing or Perfetto",
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.shown_files import log_named

    file = log_named(args.run_id)
    if file is not None:
        return _show_log(args, file)  # a log needs no store

    from flowos.operations import history
    from flowos.operations.processes import is_process, process
    from flowos.operations.usual import with_places
    from flowos.report import WIDTH, json, text

    for option in ("html", "trace"):
        if getattr(args, option) is not None:
            raise UsageError(
                f"--{option} takes the log of a slice: flowos show FILE.log --{option} OUT"
                + (f"; there is no file {args.run_id}" if args.run_id != "last" else "")
            )
    if is_process(args.run_id):
        from flowos.cli.ps import lines

        found = process(args.run_id)
        print_json(found) if args.json else print_folded("\n".join(lines(found)))
        return 0
    report = with_places(history.report(args.run_id, args.store), args.store)
    if args.json:
        print(json(report))
    else:
        print_folded(text(report, text_width(WIDTH)))
    return 0


def _show_log(args: argparse.Namespace, file: Path) -> int:
    from flowos.operations.task_log import read_log, write_page, write_trace
    from flowos.report import log_text

    if args.html is not None and args.html == args.trace:
        raise UsageError(f"--html and --trace name the same file: {args.html}")
    log = read_log(file)
    for out, write in ((args.trace, write_trace), (args.html, write_page)):
        if out is not None:
            write(log, out)
            note(f"written: {out}")
    if log.damaged:
        lines = "1 damaged line is" if log.damaged == 1 else f"{log.damaged} damaged lines are"
        print(f"flowos show: {lines} left out; {log.damage}", file=sys.stderr)
    if args.json:
        print_json(log.tasks)
    else:
        print_folded(log_text(log) or f"no task is in {args.run_id}\n", end="")
    return 0
