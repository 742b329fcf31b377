"""`flowos ps`: the programs that used slices."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from flowos.cli._output import print_folded, print_json
from flowos.cli._shared import add_json, positive, top_command

if TYPE_CHECKING:
    from flowos.model import Process


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "ps", "flowos ps --limit 5")
    command.add_argument("--limit", type=positive, metavar="N", help="show at most N processes")
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.processes import processes

    answer = processes(args.limit)
    if answer.note:
        print(f"flowos ps: {answer.note}", file=sys.stderr)
    if args.json:
        print_json(list(answer.found))
        return 0
    if not answer.found:
        print("no program used a slice yet")
    for process in answer.found:
        print_folded(_line(process))
    return 0


def lines(process: "Process") -> list[str]:
    """One process, for `flowos show`."""
    found = [
        _line(process),
        f"  on {process.host}, pid {process.pid}, since {process.started}{_until(process)}",
        f"  {_used(process)}",
    ]
    for use in process.uses:
        where = f"{use.pool}:{use.node} {use.env}"
        slices = "1 slice" if use.slices == 1 else f"{use.slices} slices"
        kept = f"  {use.hits} results kept from before" * bool(use.hits)
        runs = _runs(process, use.runs)
        held = "a time that is not known" if _was_killed(process) else f"{use.held_seconds:g} s"
        found.append(f"  {use.flow}  {where}  {slices}  {runs}  held {held}{kept}")
    from flowos.cli.slice import line_of
    from flowos.operations.slices import slices_of

    return [*found, *(f"  {line_of(each)}" for each in slices_of(process.id))]


def _line(process: "Process") -> str:
    runs = sum(use.runs for use in process.uses)
    state = "killed" if _was_killed(process) else process.state
    command = " ".join(shlex.join(process.argv).split())
    cut = f"{command[:60]}..." if len(command) > 60 else command
    return f"{process.id}  {process.started[11:16]}  {state:7}  {_runs(process, runs)}  {cut}"


def _was_killed(process: "Process") -> bool:
    """Its numbers are those of its last record, which may be of its first slice."""
    return process.state == "lost"


def _runs(process: "Process", count: int) -> str:
    if not _was_killed(process):
        return f"{count} runs"
    return f"{count} runs or more" if count else "runs not known"


def _until(process: "Process") -> str:
    if _was_killed(process):
        return f", killed after {process.ended}"
    return f", until {process.ended}" * bool(process.ended)


def _used(process: "Process") -> str:
    if _was_killed(process):
        return "cpu time and memory not known: it was killed before it recorded them"
    megabytes = process.max_rss_bytes / 1e6
    return f"{process.cpu_seconds:g} s of cpu, {megabytes:.0f} MB of memory at most"
