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
    megabytes = process.max_rss_bytes / 1e6
    found = [
        _line(process),
        f"  on {process.host}, pid {process.pid}, since {process.started}"
        + f", until {process.ended}" * bool(process.ended),
        f"  {process.cpu_seconds:g} s of cpu, {megabytes:.0f} MB of memory at most",
    ]
    for use in process.uses:
        where = f"{use.pool}:{use.node} {use.env}"
        slices = "1 slice" if use.slices == 1 else f"{use.slices} slices"
        kept = f"  {use.hits} results kept from before" * bool(use.hits)
        found.append(
            f"  {use.flow}  {where}  {slices}  {use.runs} runs  held {use.held_seconds:g} s{kept}"
        )
    from flowos.cli.slice import line_of
    from flowos.operations.slices import slices_of

    return [*found, *(f"  {line_of(each)}" for each in slices_of(process.id))]


def _line(process: "Process") -> str:
    runs = sum(use.runs for use in process.uses)
    command = " ".join(shlex.join(process.argv).split())
    cut = f"{command[:60]}..." if len(command) > 60 else command
    return f"{process.id}  {process.started[11:16]}  {process.state:7}  {runs} runs  {cut}"
