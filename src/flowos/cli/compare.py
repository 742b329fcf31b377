"""`flowos compare`: which level of an axis is better, or two runs beside each other."""

import argparse
import json
import math
from typing import TYPE_CHECKING

from flowos.cli._shared import add_json, add_store, with_example
from flowos.model import UsageError, to_plain

if TYPE_CHECKING:
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
    command.add_argument(
        "--only", metavar="PROBE,...", default="", help="what these probes measured only"
    )
    command.add_argument(
        "--all",
        action="store_true",
        help="of two runs also the numbers whose ranges meet (JSON has them in any case)",
    )
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.acts import kept
    from flowos.report import runs_text, verdicts_text

    if not 0 < args.margin < 1:
        raise UsageError(f"--margin {args.margin}: give a share between 0 and 1, such as 0.03")
    verdicts: tuple[Verdict, ...]
    match args.run_ids, args.axis:
        case [ref], str(axis):
            verdicts = kept.compared(ref, args.store, axis=axis, base=args.base, margin=args.margin)
        case [first, second], None:
            verdicts = kept.beside((first, second), args.store)
        case _:
            raise UsageError("give one run and --axis NAME, or two runs")
    verdicts = _of_probes(verdicts, args.only)
    if args.json:
        print(json.dumps([plain(v) for v in verdicts], indent=1))
    elif args.axis is None:
        print(runs_text(verdicts, everything=args.all), end="")
    else:
        print(verdicts_text(verdicts), end="")
    return 0


def plain(v: "Verdict") -> dict[str, object]:
    """null is what is not known: no ratio, or no end of the interval."""
    told: dict[str, object] = to_plain(v)
    unknown = [name for name in ("ratio", "low", "high") if not math.isfinite(getattr(v, name))]
    return told | dict.fromkeys(unknown)


def _of_probes(verdicts: "tuple[Verdict, ...]", only: str) -> "tuple[Verdict, ...]":
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    known = dict.fromkeys(v.probe for v in verdicts)
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"--only {name}: what can be compared is of {', '.join(known) or 'none'}"
            )
    return tuple(v for v in verdicts if v.probe in wanted or not wanted)
