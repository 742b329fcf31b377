"""`flowos measure --suite`: a paper's measurements, repeated with what is at hand."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from flowos.cli._commands import FAILED, NOT_KEPT
from flowos.cli._interrupts import how_ended
from flowos.cli._live import live_of
from flowos.cli._output import note, notes, print_folded, print_json, text_width
from flowos.cli._pool_options import LIKE_HERE, nodes_of
from flowos.model import EnvironmentRefused, MeasurementRequest, UsageError
from flowos.probes.suites import SUITES

if TYPE_CHECKING:
    from flowos.operations._suite_plan import PlannedFigure, SuitePlan
    from flowos.operations.suite import SuiteResult


def add_suite(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--suite",
        metavar="NAME",
        help=f"repeat a paper's measurements, of {', '.join(SUITES)}; --only then names figures,"
        " as --only 5,'table 2'. Given again, it goes on where it was",
    )
    command.add_argument(
        "--again", action="store_true", help="with --suite: begin anew, not where it was"
    )


def check_suite(args: argparse.Namespace) -> None:
    """Raises UsageError for what does not go together."""
    if args.suite is None:
        if args.again:
            raise UsageError("--again is of a suite: give --suite NAME")
    elif args.deployments is not None or args.between:
        raise UsageError("--deployments and --between: not with --suite, which holds nodes once")
    elif args.junit is not None:
        raise UsageError("--junit: not with --suite; it is of --check BASELINE")
    elif args.check is not None:
        raise UsageError("--check: not with --suite; measure it, then: flowos compare BASELINE RUN")


def run_suite(
    args: argparse.Namespace, request_of: Callable[[argparse.Namespace], MeasurementRequest]
) -> int:
    """Measure what is left of a suite, show it, keep it; the exit code as the help says it."""
    try:
        return _run(args, request_of)
    except EnvironmentRefused as error:
        raise UsageError(str(error)) from error


def _run(
    args: argparse.Namespace, request_of: Callable[[argparse.Namespace], MeasurementRequest]
) -> int:
    from flowos.operations.suite import SuiteRequest, measured_suite, planned_suite, suite_named

    suite_named(args.suite)
    wanted = SuiteRequest(
        name=args.suite,
        figures=args.only,
        again=args.again,
        pool=args.pool or "",
        nodes=nodes_of(args) if args.pool else 1,
    )
    args.only = ()
    request = request_of(args)
    seconds = None if args.minutes is None else 60 * args.minutes
    if args.dry_run:
        _show_plan(planned_suite(request, wanted, url=args.store, seconds=seconds), args.json)
        if args.pool:
            note(LIKE_HERE)
        return 0
    with live_of(args) as live:
        result = measured_suite(
            request,
            wanted,
            out=args.out,
            url=args.store,
            seconds=seconds,
            on_progress=live.show,
            on_sample=live.show_sample,
        )
    _show(result, args.json)
    return _exit_code(result)


def _show(result: "SuiteResult", as_json: bool) -> None:
    from flowos.report import suite_json, suite_text

    show = print if as_json else print_folded
    show((suite_json if as_json else suite_text)(result.report), end="")
    notes(result.notes, failed=_exit_code(result) != 0)
    if result.page:
        note(f"written: {result.page}")
    if result.interrupted:
        print("flowos measure: interrupted: the same command goes on with it", file=sys.stderr)


def _exit_code(result: "SuiteResult") -> int:
    if result.interrupted:
        return how_ended()[0]
    if result.lost or not any(run_report.measurements for run_report in result.report.reports):
        return FAILED
    return 0 if result.kept and result.page else NOT_KEPT


def _show_plan(plan: "SuitePlan", as_json: bool) -> None:
    if as_json:
        print_json({**_plain(plan), "seconds": plan.seconds})
        return
    from flowos.report import WIDTH, wrapped

    width = text_width(WIDTH)
    for indent, line in _lines(plan):
        print("\n".join(wrapped(line, indent, f"{indent}  ", width)))


def _printed(plan: "SuitePlan") -> Counter[str]:
    """Numbers that stand in the paper's text, of each figure."""
    from flowos.report import published

    return Counter(each.figure for each in published(plan.suite.name).numbers)


def _plain(plan: "SuitePlan") -> dict[str, object]:
    printed = _printed(plan)
    figures = [
        {
            "number": planned.figure.number,
            "title": planned.figure.title,
            "published_numbers": printed[planned.figure.number],
            "probes": planned.probes,
            "lacking": [(probe, why.reason, why.remedy) for probe, why in planned.lacking],
            "instead": planned.figure.instead if planned.probes else "",
        }
        for planned in plan.figures
    ]
    steps = [
        {
            "probe": step.probe,
            "probes": step.probes,
            "figures": step.figures,
            "cases": [case.label for case in step.cases],
            "seconds": step.seconds,
            "done": step.done,
        }
        for step in plan.steps
    ]
    return {"suite": plan.suite.name, "figures": figures, "steps": steps}


def _lines(plan: "SuitePlan") -> Iterator[tuple[str, str]]:
    """(indent, line)"""
    from flowos.report import figure_name

    yield "", f"{plan.suite.name}: {plan.suite.title}"
    printed = _printed(plan)
    for planned in plan.figures:
        figure = planned.figure
        numbers = _counted(printed[figure.number], "number")
        yield "", f"{figure_name(figure.number)}: {figure.title} ({numbers} in the paper's text)"
        yield from (("    ", line) for line in _figure(planned, plan))
    count = f"{len(plan.left)} of {len(plan.steps)} probes are to be measured"
    yield "", f"{count}, in about {_time(plan.seconds)}; building their programs apart"


def _figure(planned: "PlannedFigure", plan: "SuitePlan") -> Iterator[str]:
    for step in (step for step in plan.steps if step.probe in planned.probes):
        bounds = f", with {', '.join(step.probes[:-1])}" if step.probes[1:] else ""
        left = len(step.cases) - len(step.measured)
        count = f"{left} of " * bool(step.measured) + _counted(len(step.cases), "case")
        will = f"{count}{bounds}, about {_time(step.seconds)}"
        yield f"{step.probe}: " + (f"measured already, run {step.done}" if step.done else will)
    for probe, why in planned.lacking:
        remedy = f" (to mend it: {why.remedy})" if why.remedy else ""
        yield f"{f'{probe}: ' if probe else ''}not here: {why.reason}{remedy}"
    if planned.probes and planned.figure.instead:
        yield f"instead: {planned.figure.instead}"


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'s' * (count != 1)}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
