"""`flowos measure`: what this machine can do, or a command takes, and which numbers to trust."""

import argparse
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from flowos.cli._check import baseline_to_check, show_check, wrote_junit
from flowos.cli._commands import FAILED, NOT_KEPT
from flowos.cli._commands_of_yours import add_command, command_after_dashes, seconds_of
from flowos.cli._interrupts import how_ended
from flowos.cli._live import live_of
from flowos.cli._output import note, notes, print_folded, show_plan, text_width
from flowos.cli._pool_options import (
    LIKE_HERE,
    add_pool,
    check_pool,
    deployment_of,
    run_deployments,
)
from flowos.cli._shared import add_json, add_store, given_path, number, probe_names, top_command
from flowos.cli._suite_options import add_suite, check_suite, run_suite
from flowos.model import (
    Baseline,
    EnvironmentRefused,
    Facts,
    FlowosError,
    MeasurementRequest,
    UsageError,
)
from flowos.probes import NOMINAL, probe_named, probes_for

if TYPE_CHECKING:
    from flowos.operations.measure import Result


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "measure",
        "flowos measure --only stream,gemm --quick\n"
        "         flowos measure -- ./solver input.dat\n"
        "         flowos measure --check baseline.json --junit junit.xml",
    )
    effort = command.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="at most a minute, fewer cases")
    effort.add_argument("--full", action="store_true", help="every case, up to an hour")
    command.add_argument(
        "--only",
        metavar="PROBE,...",
        type=probe_names,
        default=(),
        help=f"these probes only, of {', '.join(_probes())}; with --env of {', '.join(_probes(2))}",
    )
    command.add_argument(
        "--minutes",
        type=number,
        metavar="M",
        help="how long measuring may take, building its programs apart (default 3; --quick takes"
        " 52 s; side by side 30): then nothing more begins, and what still runs is stopped a tenth"
        " of that later, 5 s at least",
    )
    _add_places(command)
    _add_environments(command)
    add_pool(command)
    _add_check(command)
    add_suite(command)
    command.add_argument("--dry-run", action="store_true", help="show the cases and commands only")
    add_store(command)
    add_json(command)
    add_command(command)


def _probes(environments: int = 1) -> list[str]:
    return [probe.name for probe in probes_for(environments) if not probe.info.asked]


def _add_places(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out",
        type=given_path,
        default=Path("flowos-report"),
        metavar="DIR",
        help="folder of the report",
    )
    command.add_argument(
        "--scratch",
        type=PurePath,
        metavar="DIR",
        help="folder on the storage to be measured (default /var/tmp; of a pool its shared folder)",
    )
    command.add_argument(
        "--nominal",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what a data sheet says, such as "
        + " or ".join(f"{name}={speed.example}" for name, speed in NOMINAL.items()),
    )
    command.add_argument(
        "--matrix",
        metavar="FILE",
        help="solve with this one (Matrix Market, such as G3_circuit.mtx) in place of g3like",
    )


def _add_environments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="ENV",
        help="side by side in these environments, the base first: bare, IMAGE or IMAGE@RUNTIME;"
        " may be given again; one alone is compared with bare",
    )
    command.add_argument(
        "--binary",
        choices=("same", "own"),
        default="same",
        help="in every environment the same binary (is the runtime equal?), or what its own"
        " compiler and libraries make (is my stack equal?); default same",
    )
    command.add_argument(
        "--emulated",
        action="store_true",
        help="an image that @qemu boots without KVM too, though that says nothing of this machine",
    )


def _add_check(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--check",
        type=Path,
        metavar="BASELINE",
        help="measure what this file of `flowos baseline` has, as it was measured, and say what is"
        " worse",
    )
    command.add_argument(
        "--junit",
        type=Path,
        metavar="FILE",
        help="with --check: write the verdicts there as JUnit XML, a test case for each number",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, show, keep; the exit code as the help says it."""
    check_suite(args)
    if args.suite is not None:
        return run_suite(args, _request)
    if args.check is None and args.junit is not None:
        raise UsageError("--junit: only with --check BASELINE")
    try:
        return _run(args)
    except EnvironmentRefused as error:
        raise UsageError(str(error)) from error
    except FlowosError as error:
        if args.check is None:
            raise
        raise UsageError(str(error)) from error


def _run(args: argparse.Namespace) -> int:
    from flowos.operations import measure

    baseline = None if args.check is None else baseline_to_check(args)
    request = _request(args)
    seconds = seconds_of(args.minutes)
    check_facts: Callable[[Facts], None] = _accept
    if baseline is not None:
        from flowos.operations.baseline import check_kind, request_of

        request = request_of(baseline, request)
        check_facts = partial(check_kind, baseline)
    planned, take = measure.planned, measure.measured
    if args.pool is not None:
        from flowos.operations import deployments

        wanted = deployment_of(args, baseline)
        if args.deployments is not None and not args.dry_run:
            return run_deployments(args, request, wanted, seconds)
        planned = partial(deployments.planned_deployment, wanted=wanted)
        take = partial(deployments.measured_deployment, wanted=wanted)
    if args.dry_run:
        show_plan(planned(request, check_facts=check_facts), args.json)
        if args.pool is not None:
            note(LIKE_HERE)
        return 0
    with live_of(args) as live:
        result = take(
            request,
            out=args.out,
            url=args.store,
            seconds=seconds,
            on_progress=live.show,
            on_sample=live.show_sample,
            check_facts=check_facts,
        )
    return _shown(args, result) if baseline is None else _shown_checked(args, result, baseline)


def _accept(_: Facts) -> None:
    """Any machine is measured."""


def _shown(args: argparse.Namespace, result: "Result") -> int:
    from flowos.report import WIDTH, text
    from flowos.report import json as as_json

    if args.json:
        print(as_json(result.report))
    else:
        print_folded(text(result.report, text_width(WIDTH)))
    _say_ends(result)
    return _exit_code(result)


def _shown_checked(args: argparse.Namespace, result: "Result", baseline: Baseline) -> int:
    from flowos.operations.baseline import checked_report

    check = checked_report(baseline, result.report)
    code = show_check(check, baseline, args.check, as_json=args.json)
    written = wrote_junit(args.junit, check, result.report.run, args.check)
    _say_ends(result)
    if result.interrupted:
        return how_ended()[0]
    return code or (0 if result.kept and result.files and written else NOT_KEPT)


def _say_ends(result: "Result") -> None:
    notes(result.notes, failed=_exit_code(result) != 0)
    if result.lost:
        print(
            f"flowos measure: {result.lost}; what was measured until then is kept", file=sys.stderr
        )
    for why in result.failed:
        print(f"flowos measure: {why}", file=sys.stderr)
    for file in result.files[:1]:
        note(f"written: {file}")
    if result.interrupted:
        numbers, run = len(result.report.measurements), result.report.run.id
        count = f"{numbers} number was" if numbers == 1 else f"{numbers} numbers were"
        kept = f"; they are kept: flowos show {run}" if result.kept else ""
        words = f"flowos measure: interrupted: {count} measured until then{kept}"
        print(words, file=sys.stderr)


def _exit_code(result: "Result") -> int:
    if not result.report.measurements or result.failed or result.lost:
        return FAILED
    if result.interrupted:
        return how_ended()[0]
    return 0 if result.kept and result.files else NOT_KEPT


def _request(args: argparse.Namespace) -> MeasurementRequest:
    seconds_of(args.minutes)
    commands = command_after_dashes(args)
    check_pool(args)
    if args.env == ["bare"]:
        raise UsageError("--env bare: name what is to be compared with it, as --env IMAGE")
    return MeasurementRequest(
        probes=args.only,
        effort="quick" if args.quick else "full" if args.full else "normal",
        scratch=Path(_scratch(args)).absolute(),  # programs run in folders of their own
        nominal=tuple(_nominal(word) for word in args.nominal),
        matrix=_matrix(args),
        environments=("bare", *args.env) if len(args.env) == 1 else tuple(args.env),
        binary=args.binary,
        emulated=args.emulated,
        commands=commands,
        folder=Path.cwd() if commands else None,
        ignore_failure=args.ignore_failure,
    )


def _scratch(args: argparse.Namespace) -> PurePath:
    """Between nodes one that all of them see. Raises UsageError for an unknown pool."""
    from flowos.operations._scratch import scratch_of

    usual = scratch_of(args.pool)
    return args.scratch or usual


def _matrix(args: argparse.Namespace) -> PurePath | None:
    word = args.matrix
    if word is None:
        return None
    chosen = [probe for name in args.only if (probe := probe_named(name)) is not None]
    if args.quick or (args.only and not any(probe.info.reads_matrix for probe in chosen)):
        left_out = "--quick" if args.quick else f"--only {','.join(args.only)}"
        raise UsageError(
            f"--matrix {word}: {left_out} solves with no matrix of yours; leave it out"
        )
    if not Path(word).is_file():
        raise UsageError(f"--matrix {word}: there is no such file")
    if not word.endswith(".mtx"):
        raise UsageError(f"--matrix {word}: give a Matrix Market file, NAME.mtx, unpacked")
    with Path(word).open("rb") as file:
        if file.read(14).lower() != b"%%matrixmarket":
            raise UsageError(f"--matrix {word}: it does not begin with %%MatrixMarket")
    return Path(word).absolute()


def _nominal(word: str) -> tuple[str, float]:
    name, _, value = word.partition("=")
    if name not in NOMINAL:
        raise UsageError(f"--nominal {word!r}: the names are {' and '.join(NOMINAL)}")
    speed = NOMINAL[name]
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not speed.low <= number <= speed.high:
        between = f"between {speed.low:g} and {speed.high:g} {speed.unit}"
        raise UsageError(f"--nominal {word!r}: expected {between}, as in {name}={speed.example}")
    return name, number
