"""`flowos compare`: which level of an axis is better, or two runs beside each other."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from flowos.cli._shared import add_json, add_store, with_example
from flowos.model import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowos.model import Verdict


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = with_example(
        commands,
        "compare",
        "the levels of an axis inside a run, or two runs beside each other",
        "flowos compare last --axis stores",
    )
    command.add_argument("run_ids", nargs="*", default=["last"], metavar="RUN")
    command.add_argument("--axis", metavar="NAME", help="compiler, stores, library, isa, ...")
    command.add_argument("--base", default="", metavar="LEVEL", help="the level to compare with")
    command.add_argument(
        "--margin", type=float, default=0.03, metavar="M", help="equal within M (default 0.03)"
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.acts import kept

    if not 0 < args.margin < 1:
        raise UsageError(f"--margin {args.margin}: give a share between 0 and 1, such as 0.03")
    verdicts: Iterable[Verdict]
    match args.run_ids, args.axis:
        case [ref], str(axis):
            verdicts = kept.compared(ref, args.store, axis=axis, base=args.base, margin=args.margin)
        case [first, second], None:
            verdicts = kept.beside((first, second), args.store)
        case _:
            raise UsageError("give one run and --axis NAME, or two runs")
    if args.json:
        print(json.dumps([asdict(v) for v in verdicts], indent=1))
    else:
        print("\n".join(map(_line, verdicts)) or "nothing to compare: no case stands on both sides")
    return 0


def _line(v: "Verdict") -> str:
    rest = " ".join(f"{axis}={level}" for axis, level in v.rest)
    figures = f"{v.ratio:.3f} ({v.low:.3f} to {v.high:.3f})"
    why = f" ({v.why})" if v.why else ""
    where = f"{v.probe} {v.metric} {rest}".rstrip()
    return f"{where}: {v.other} is {figures} of {v.base}: {v.answer}{why}"
