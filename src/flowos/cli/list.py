"""`flowos list`: the runs that are kept."""

import argparse
from typing import TYPE_CHECKING

from flowos.cli._output import print_folded, print_json
from flowos.cli._shared import add_json, add_store, positive, top_command
from flowos.model import counted

if TYPE_CHECKING:
    from flowos.model import ListedRun


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "list", "flowos list --limit 5")
    command.add_argument("--limit", type=positive, metavar="N", help="show at most N runs")
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations import stored_runs

    found = stored_runs.runs(args.store, args.limit)
    if args.json:
        print_json([plain(listed) for listed in found])
        return 0
    if not found:
        print("no run is kept yet: `flowos measure` makes one")
    for listed in found:
        probes = ",".join(listed.run.request.subject) or "all"
        ended = "" if listed.run.ended else "  (did not end)"
        started = listed.run.started[11:16]
        print_folded(
            f"{listed.run.id}  {started}  {listed.run.host}  {listed.run.request.effort} {probes}"
            f"  {counted(listed.samples, 'sample')}{ended}"
        )
    return 0


def plain(listed: "ListedRun") -> dict[str, object]:
    return {
        "id": listed.run.id,
        "started": listed.run.started,
        "ended": listed.run.ended,
        "host": listed.run.host,
        "effort": listed.run.request.effort,
        "probes": list(listed.run.request.probes),
        "samples": listed.samples,
    }
