"""`flowos slice`: the slices of pools, what they used and cost; free one."""

import argparse
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flowos.cli._output import print_folded, print_json
from flowos.cli._shared import add_json, asked_of_pool, positive, top_command, with_example
from flowos.model import counted

if TYPE_CHECKING:
    from flowos.model import SliceRecord
    from flowos.operations.slices import FreedSlice

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


_NEWEST = 20
"""So many slices are listed without --limit."""
_LAST_SECOND = 1e11
"""Whatever a record says is shown as a time that there is."""


def add(commands: "Commands") -> None:
    top = top_command(commands, "slice", "flowos slice ls")
    commands = top.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    listed = with_example(
        commands,
        "ls",
        "slices of pools, newest first: what waits and why, what is held, what it cost",
        "flowos slice ls --limit 10",
    )
    listed.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help=f"show at most N slices (default: {_NEWEST}, and all that have not ended)",
    )
    add_json(listed)
    _add_named(
        commands,
        "show",
        "a slice: what was asked for, why it waited, its nodes, what it used and cost",
        "flowos slice show gpu-3f9a1c2e",
    )
    _add_named(
        commands,
        "log",
        "what happened to a slice, and which tasks ran (if it has a log=)",
        "flowos slice log gpu-3f9a1c2e",
    )
    freed = _add_named(
        commands,
        "free",
        "end a slice of whatever program of yours, also of one that was killed",
        "flowos slice free gpu-3f9a1c2e --dry-run",
    )
    freed.add_argument(
        "--dry-run", action="store_true", help="show what would be freed, do nothing"
    )
    _add_attach(commands)


def _add_attach(commands: "Commands") -> None:
    attach = _add_named(
        commands,
        "attach",
        "renew the lease of a slice whose program is gone: fo.attach(ID) uses its nodes",
        "flowos slice attach gpu-3f9a1c2e --seconds 3600",
    )
    attach.add_argument(
        "--seconds",
        type=asked_of_pool("lease_seconds"),
        metavar="TIME",
        help="for so long from now on (default: as long as the lease was asked for)",
    )
    attach.add_argument("--dry-run", action="store_true", help="show what it would do, do nothing")


def _add_named(
    commands: "Commands", name: str, about: str, example: str
) -> argparse.ArgumentParser:
    command = with_example(commands, name, about, example)
    command.add_argument("slice", metavar="ID", help="a slice's id, or its beginning")
    add_json(command)
    return command


def run(args: argparse.Namespace) -> int:
    shown = {"ls": _list, "show": _show, "log": _log, "free": _free, "attach": _attach}
    return shown[args.subcommand](args)


def _list(args: argparse.Namespace) -> int:
    from flowos.operations.slices import plain_slice, slices

    answer = slices(args.limit)
    if answer.note:
        print(f"flowos slice: {answer.note}", file=sys.stderr)
    if args.json:
        print_json([plain_slice(each) for each in answer.found])
        return 0
    if not answer.found:
        print_folded(
            "no slice of a pool yet: flowos run FLOW.py --pool NAME, or fo.slice(pool=NAME)"
        )
    all_of_it = args.limit is not None
    shown = [s for at, s in enumerate(answer.found) if all_of_it or at < _NEWEST or not s.is_over]
    for each in shown:
        print_folded(line_of(each))
    if more := len(answer.found) - len(shown):
        print(f"and {more} that ended before: flowos slice ls --limit {len(answer.found)}")
    return 0


def _show(args: argparse.Namespace) -> int:
    from flowos.operations.slices import plain_slice, slice_named, with_accounts

    found, why_none = with_accounts(slice_named(args.slice))
    if args.json:
        print_json({**plain_slice(found), "accounts_missing": why_none or None})
    else:
        print_folded("\n".join(_lines(found, why_none)))
    return 0


def _log(args: argparse.Namespace) -> int:
    from flowos.operations.slices import logged_tasks, slice_named
    from flowos.report import asked_words, log_text

    found = slice_named(args.slice)
    log = logged_tasks(found)
    if args.json:
        print_json({"events": found.events, "tasks": log.tasks if log else None})
        return 0
    print_folded(f"{_clock(found.asked)}  asked for {asked_words(found.ask)}")
    for event in found.events:
        node = f"node {event.node}: " * bool(event.node)
        why = f": {event.reason}" * bool(event.reason)
        print_folded(f"{_clock(event.at)}  {node}{event.what}{why}")
    if log is None:
        print_folded("no log of its tasks: give fo.slice(..., log=FILE)")
    else:
        print_folded(log_text(log) or f"no task is in {found.log}\n", end="")
    return 0


def _free(args: argparse.Namespace) -> int:
    from flowos.operations.slices import free, plain_slice

    done = free(args.slice, dry_run=args.dry_run)
    if args.json:
        print_json({"did": done.did, "slice": plain_slice(done.slice)})
    else:
        print_folded(_freed(done))
    return 0


def _attach(args: argparse.Namespace) -> int:
    from flowos.operations.slices import plain_slice, renew

    found, seconds = renew(args.slice, args.seconds, dry_run=args.dry_run)
    if args.json:
        print_json({"slice": plain_slice(found), "lease_seconds": seconds})
    else:
        would = "would be" if args.dry_run else "is"
        print_folded(f"{_what(found)} {would} held for {seconds:g} s, for fo.attach({found.id!r})")
    return 0


def _freed(done: "FreedSlice") -> str:
    found = done.slice
    if done.did == "over":
        return f"{found.id} is over already: {_ended(found)}"
    whose = f"of {done.process}" if done.process else "whose program is gone"
    did = "would free" if done.did == "would free" else "freed"
    waits = ", without a node yet" * (not found.nodes)
    return f"{did} {found.id} {whose}{waits}: {_what(found)}"


def line_of(found: "SliceRecord") -> str:
    """A slice in one line."""
    now = time.time()
    words = [found.id, _clock(found.asked), f"{found.state:7}", _what(found)]
    words += [f"waited {_seconds(found.waited_seconds(now))}"]
    words += [f"node-seconds {found.node_seconds(now):.1f}"] * bool(found.nodes)
    words += [_cost(found)] * (_cost(found) != "")
    words += [_why(found)] * (found.state not in ("held", "freed") and bool(found.why))
    return "  ".join(words)


def _lines(found: "SliceRecord", why_none: str) -> list[str]:
    from flowos.report import accounted_words, asked_words, job_words

    now = time.time()
    lines = [
        f"{found.id}  {found.state}" + f": {_why(found)}" * bool(found.why),
        f"  of {found.process}, pool {found.pool} ({found.kind})",
        f"  asked for {asked_words(found.ask)} at {_iso(found.asked)}",
        f"  waited {_seconds(found.waited_seconds(now))}",
    ]
    lines += [f"    {_seconds(seconds)} for {reason}" for reason, seconds in found.waits(now)]
    booted = [event.reason for event in found.events if event.what == "booting"]
    if booted:
        lines.append(f"  booted {'; '.join(booted)}: {_seconds(found.booted_seconds(now))}")
    lines += [f"  {job_words(found)}"] * bool(found.jobs)
    for node in found.nodes:
        until = "now" if node.until is None else _iso(node.until)
        has = [counted(node.cores, "core"), *[counted(node.gpus, "GPU")] * bool(node.gpus)]
        has += [f"{count} {name}" for name, count in node.devices]
        has += [f"switch {node.switch}"] * bool(node.switch)
        lines.append(
            f"  held {node.name}: {', '.join(has)}, {_seconds(node.seconds(now))}, "
            f"from {_iso(node.since)} to {until}"
        )
    if found.nodes:
        used = [f"{found.node_seconds(now):.1f} node-seconds"]
        used += [f"{found.core_seconds(now):.1f} core-seconds"]
        used += [f"{found.gpu_seconds(now):.1f} GPU-seconds"] * bool(found.gpu_seconds(now))
        lines.append(f"  used {', '.join(used)}")
        if found.cpu_seconds is not None and found.max_rss_bytes is not None:
            lines.append(
                f"  its tasks used {found.cpu_seconds:g} s of cpu, "
                f"{found.max_rss_bytes / 1e6:.0f} MB at most"
            )
        lines.append(f"  cost {_cost(found) or f'not known: pool {found.pool} has no price'}")
    lines += [f"  {why_none}"] * bool(why_none)
    if found.accounts:
        lines.append(f"  {accounted_words(found.accounts)}")
    lines += [f"  ended {_iso(found.ended)}"] if found.ended is not None else []
    return lines


def _what(found: "SliceRecord") -> str:
    from flowos.report import asked_words

    names = [node.name for node in found.nodes if found.is_over or node.until is None]
    shown = (
        f"{', '.join(names[:3])}{' ...' * (len(names) > 3)}" if names else asked_words(found.ask)
    )
    return f"{shown} of pool {found.pool}"


def _ended(found: "SliceRecord") -> str:
    why = f" ({_why(found)})" * bool(found.why)
    return f"{found.state}{why}" + (f" {_iso(found.ended)}" if found.ended else "")


def _why(found: "SliceRecord") -> str:
    return f"its lease ended {found.why}" if found.why.startswith("after ") else found.why


def _cost(found: "SliceRecord") -> str:
    cost = found.cost(time.time())
    if cost is None or found.price is None:
        return ""
    return f"{cost:.4f} {found.price.currency}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"


def _clock(at: float) -> str:
    return _iso(at)[11:19]


def _iso(at: float) -> str:
    moment = datetime.fromtimestamp(min(max(0.0, at), _LAST_SECOND), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
