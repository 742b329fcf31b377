"""`flowos ps`: the programs that used slices."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from flowos.cli._output import print_folded, print_json, text_width
from flowos.cli._shared import add_json, positive, top_command
from flowos.model import counted

if TYPE_CHECKING:
    from flowos.model import Process, SliceUse

_LEAST_COLUMNS = 30
"""Of a command that is cut in the row of its process; with fewer it has a line of its own."""
_INDENT = " " * 4


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
        print_folded(_listed(process))
    return 0


def lines(process: "Process") -> list[str]:
    """One process, for `flowos show`."""
    found = [
        f"{_head(process)}  {_command(process)}",
        f"  on {process.host}, pid {process.pid}, since {process.started}{_until(process)}",
        f"  {_used(process)}",
    ]
    for use in process.uses:
        where = f"{use.pool}:{use.node} {use.env}"
        slices = counted(use.slices, "slice")
        kept = f"  {counted(use.hits, 'result')} kept from before" * bool(use.hits)
        runs = _runs(process, use.runs, use.failed)
        held = "a time that is not known" if _was_killed(process) else f"{use.held_seconds:g} s"
        found.append(f"  {use.flow}  {where}  {slices}  {runs}  held {held}{kept}")
        found += _failures(use)
    from flowos.cli.slice import line_of
    from flowos.operations.slices import slices_of

    return [*found, *(f"  {line_of(each)}" for each in slices_of(process.id))]


def _listed(process: "Process") -> str:
    """Its row; on a terminal with as much of the command as has room."""
    head, command = _head(process), _command(process)
    if not sys.stdout.isatty():
        return f"{head}  {command}"
    from flowos.report import cut

    columns = text_width(sys.maxsize)
    room = columns - len(head) - 2
    if cut(command, room) != command and room < _LEAST_COLUMNS:
        head, room = f"{head}\n{_INDENT}", columns - len(_INDENT)
    else:
        head += "  "
    whole = cut(command, room) == command
    return head + (command if whole else f"{cut(command, room - 3)}...")


def _head(process: "Process") -> str:
    runs = sum(use.runs for use in process.uses)
    failed = sum(use.failed for use in process.uses)
    state = "killed" if _was_killed(process) else process.state
    return f"{process.id}  {process.started[11:16]}  {state:7}  {_runs(process, runs, failed)}"


def _command(process: "Process") -> str:
    command = " ".join(shlex.join(process.argv).split())
    return _printable(command)


def _printable(words: str) -> str:
    if words.isprintable():
        return words
    from flowos.report import safe

    return safe(words)


def _was_killed(process: "Process") -> bool:
    """Its numbers are those of its last record, which may be of its first slice."""
    return process.state == "lost"


def _runs(process: "Process", count: int, failed: int) -> str:
    bad = f", {failed} failed" * bool(failed)
    if not _was_killed(process):
        return counted(count, "run") + bad
    return f"{counted(count, 'run')} or more{bad}" if count else "runs not known"


def _failures(use: "SliceUse") -> list[str]:
    """How the last ones ended."""
    kept = len(use.failures)
    title = [f"    of {use.failed} that failed the last {kept}:"] * (use.failed > kept > 0)
    return [*title, *(f"    failed: {_printable(said)}" for said in use.failures)]


def _until(process: "Process") -> str:
    if _was_killed(process):
        return f", killed after {process.ended}"
    return f", until {process.ended}" * bool(process.ended)


def _used(process: "Process") -> str:
    if _was_killed(process):
        return "cpu time and memory not known: it was killed before it recorded them"
    megabytes = process.max_rss_bytes / 1e6
    return f"{process.cpu_seconds:g} s of cpu, {megabytes:.0f} MB of memory at most"
