"""`flowos compare`: which level of an axis is better, or two runs side by side."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowos.cli._check import EXITS, show_check, wrote_junit
from flowos.cli._commands_of_yours import (
    add_commands,
    commands_to_compare,
    seconds_of,
    without_commands,
)
from flowos.cli._interrupts import how_ended
from flowos.cli._live import live_of
from flowos.cli._machines import AXES, compare_many
from flowos.cli._output import note, notes, print_folded, print_json, show_plan, text_width
from flowos.cli._shared import (
    add_json,
    add_store,
    given_path,
    number,
    positive,
    probe_names,
    share_of_1,
    top_command,
)
from flowos.model import EQUAL_MARGIN, RUNS_MARGIN, FlowosError, UsageError

if TYPE_CHECKING:
    from flowos.model import Verdict

_EXAMPLES = (
    "flowos compare last --axis stores\n"
    "         flowos compare 2026-11-20-3fa2c1 last\n"
    "         flowos compare baseline.json last\n"
    "         flowos compare last --axis time\n"
    "         flowos compare --command 'gzip -kf data' --command 'zstd -kf data'"
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "compare", _EXAMPLES)
    command.add_argument(
        "run_ids",
        nargs="*",
        default=[],
        metavar="RUN",
        help="runs; before one also a file of `flowos baseline`",
    )
    command.add_argument(
        "--axis",
        metavar="NAME",
        help="compiler, stores, library, isa, ...; deployment: of a run of a pool's nodes; machine:"
        " which are slow, of these runs or all that are like one; time: when a machine changed, by"
        " these runs or all that are like one",
    )
    command.add_argument("--base", default="", metavar="LEVEL", help="the level to compare with")
    command.add_argument(
        "--margin",
        type=number,
        metavar="M",
        help=f"equal within M (default {EQUAL_MARGIN:g}, of storage between environments 0.06; of"
        f" two runs, which were not interleaved, {RUNS_MARGIN:g})",
    )
    command.add_argument(
        "--only", metavar="PROBE,...", default="", help="what these probes measured only"
    )
    command.add_argument(
        "--all",
        action="store_true",
        help="of two runs also the numbers whose ranges meet (JSON has them in any case)",
    )
    command.add_argument(
        "--out",
        type=given_path,
        metavar="DIR",
        help="with --axis deployment, or --command: write it as a page into this folder, too",
    )
    _add_many(command)
    add_commands(command)
    add_store(command)
    add_json(command)


def _add_many(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--limit", type=positive, metavar="N", help="with --axis machine or time: the newest N runs"
    )
    command.add_argument(
        "--error",
        type=share_of_1,
        metavar="E",
        help="with --axis machine or time: probability, at most, of any alarm if all is alike"
        " (default 0.05)",
    )
    command.add_argument(
        "--junit",
        type=Path,
        metavar="FILE",
        help="with a baseline: write the verdicts there as JUnit XML, too",
    )


def run(args: argparse.Namespace) -> int:
    """The exit code as the help says it; 2 for every failure, as 1 says that something is worse."""
    if args.margin is not None and not 0 < args.margin < 1:
        raise UsageError(
            f"--margin {args.margin}: give a share between 0 and 1, such as {EQUAL_MARGIN}"
        )
    if args.commands:
        return _commands(args)
    without_commands(args)
    if args.out is not None and args.axis != "deployment":
        raise UsageError("--out: only with --axis deployment; flowos report writes that of a run")
    _check_options(args)
    margin = {} if args.margin is None else {"margin": args.margin}
    try:
        if args.axis in AXES:
            return compare_many(args, probe_names(args.only) if args.only else ())
        match args.run_ids or ["last"], args.axis:
            case [file, *refs], None if _is_baseline(file) and len(refs) < 2:
                return _with_baseline(args, Path(file), *refs)
            case [ref], "deployment":
                return _deployments(args, ref, margin)
            case [ref], str(axis):
                return _levels(args, ref, axis, margin)
            case [first, second], None:
                return _runs(args, (first, second), margin)
    except FlowosError as error:
        raise UsageError(str(error)) from error
    raise UsageError("give one run and --axis NAME, or two runs, or a baseline and a run")


def _check_options(args: argparse.Namespace) -> None:
    """Raises UsageError for options of another kind of comparison."""
    if args.axis is None and args.base:
        raise UsageError("--base: only with --axis; of two runs the first is compared with")
    if args.axis not in (None, *AXES) and args.all:
        raise UsageError(f"--all: not with --axis {args.axis}")
    if args.axis == "deployment" and (args.base or args.only):
        raise UsageError("--base and --only: not with --axis deployment")
    if args.axis not in AXES and (args.limit or args.error):
        raise UsageError("--limit and --error: only with --axis machine or --axis time")
    if args.junit is not None and not (args.run_ids and _is_baseline(args.run_ids[0])):
        raise UsageError("--junit: only with a baseline: flowos compare BASELINE.json RUN")


def _is_baseline(word: str) -> bool:
    return word.endswith(".json") or Path(word).is_file()


def _with_baseline(args: argparse.Namespace, file: Path, ref: str = "last") -> int:
    from flowos.operations.baseline import checked_run, read_baseline

    for option, value in (("--margin", args.margin), ("--all", args.all), ("--only", args.only)):
        if value:
            raise UsageError(f"{option}: not with a baseline, which has its own tolerances")
    baseline = read_baseline(file)
    check, run = checked_run(baseline, ref, args.store)
    code = show_check(check, baseline, file, as_json=args.json)
    return code if wrote_junit(args.junit, check, run, file) else code or 2


def _commands(args: argparse.Namespace) -> int:
    """Measure them now, and compare the others with the first."""
    from flowos.operations import measure
    from flowos.plan import outcome
    from flowos.report import WIDTH, text

    request, seconds = commands_to_compare(args), seconds_of(args.minutes)
    try:
        if args.dry_run:
            show_plan(measure.planned(request), args.json)
            return 0
        with live_of(args) as live:
            result = measure.measured(
                request,
                out=args.out,
                url=args.store,
                seconds=seconds,
                on_progress=live.show,
                on_sample=live.show_sample,
            )
    except FlowosError as error:
        raise UsageError(str(error)) from error
    verdicts, run = result.report.verdicts, result.report.run.id
    answer = "cannot judge" if result.failed else outcome(verdicts)
    if args.json:
        code = EXITS[answer]
        print_json({"answer": answer, "exit_code": code, "run": run, "verdicts": verdicts})
    else:
        print_folded(text(result.report, text_width(WIDTH)), end="")
    # The exit code is the answer, and does not say so.
    notes(result.notes, failed=not (result.kept and (result.files or args.out is None)))
    for why in result.failed:
        print(f"flowos compare: {why}", file=sys.stderr)
    for file in result.files[:1]:
        note(f"written: {file}")
    return how_ended()[0] if result.interrupted else EXITS[answer]


def _deployments(args: argparse.Namespace, ref: str, margin: dict[str, float]) -> int:
    from flowos.operations.deployments import stored_deployments, with_page
    from flowos.report import deployments_text

    found = stored_deployments(ref, args.store, **margin)
    if args.out is not None:
        found = with_page(found, args.out)
    if args.json:
        print_json(found)
    else:
        print_folded(deployments_text(found.runs, found.spreads), end="")
    unwritten = args.out is not None and found.page is None
    notes(found.notes, failed=unwritten)
    if found.page:
        note(f"written: {found.page}")
    return 2 if unwritten else 0


def _levels(args: argparse.Namespace, ref: str, axis: str, margin: dict[str, float]) -> int:
    from flowos.operations.compare import compare_levels
    from flowos.plan import outcome
    from flowos.report import WIDTH, verdicts_text

    verdicts = compare_levels(ref, args.store, axis=axis, base=args.base, **margin)
    verdicts = _of_probes(verdicts, args.only)
    answer = outcome(verdicts)
    code = EXITS[answer] if args.base else 0
    if args.json:
        print_json({"answer": answer, "exit_code": code, "verdicts": verdicts})
    else:
        print_folded(verdicts_text(verdicts, text_width(WIDTH)), end="")
    return code


def _runs(args: argparse.Namespace, refs: tuple[str, str], margin: dict[str, float]) -> int:
    from flowos.operations.compare import compare_runs
    from flowos.plan import outcome
    from flowos.report import runs_text

    found = compare_runs(refs, args.store, **margin)
    known = dict.fromkeys(v.metric for v in found.probes)
    only = _chosen(args.only, known)
    probes = tuple(v for v in found.probes if v.metric in only)
    numbers = tuple(v for v in found.numbers if v.probe in only)
    answer = outcome(probes)
    if args.json:
        summary = {"answer": answer, "exit_code": EXITS[answer], "changes": found.changes}
        open_ones = [v.metric for v in probes if v.answer == "inconclusive"]
        print_json({**summary, "cannot_judge": open_ones, "probes": probes, "verdicts": numbers})
    else:
        shown = runs_text(answer, probes, numbers, changes=found.changes, everything=args.all)
        print_folded(shown, end="")
    return EXITS[answer]


def _of_probes(verdicts: "Sequence[Verdict]", only: str) -> "tuple[Verdict, ...]":
    chosen = _chosen(only, dict.fromkeys(v.probe for v in verdicts))
    return tuple(v for v in verdicts if v.probe in chosen)


def _chosen(only: str, known: Iterable[str]) -> Sequence[str]:
    """The probes that --only names; all that are known where it names none."""
    requested = [name.strip() for name in only.split(",") if name.strip()]
    known = list(known)
    for name in requested:
        if name not in known:
            raise UsageError(
                f"--only {name}: what can be compared is of {', '.join(known) or 'none'}"
            )
    return requested or known
