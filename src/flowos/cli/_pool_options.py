"""`flowos measure --pool`: on nodes of a pool, once or in several deployments."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowos.cli._commands import FAILED
from flowos.cli._interrupts import how_ended
from flowos.cli._live import live_of
from flowos.cli._output import note, notes, print_folded, print_json
from flowos.cli._shared import number, positive
from flowos.model import Baseline, MeasurementRequest, Run, UsageError

if TYPE_CHECKING:
    from flowos.operations.deployments import DeploymentRequest

LIKE_HERE = "no node is held for this: they are taken to be like this machine"


def add_pool(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--pool",
        metavar="NAME",
        help="on nodes of this pool of flowos.toml, in place of this machine: with --nodes 1 what"
        " is measured here, else what is measured between nodes; with --suite both",
    )
    command.add_argument(
        "--nodes",
        type=positive,
        metavar="N",
        help="how many nodes of the pool (default 2): solve and training scale over 1, 2, 4"
        " .. N, clients of storage are on all, mpi is between two",
    )
    command.add_argument(
        "--deployments",
        type=positive,
        metavar="N",
        help="hold nodes of the pool N times, and compare what was measured each time",
    )
    command.add_argument(
        "--between",
        type=number,
        default=0.0,
        metavar="SECONDS",
        help="with --deployments: leave the nodes alone for so long after each, so that a cloud's"
        " are ended",
    )


def check_pool(args: argparse.Namespace) -> None:
    """Raises UsageError for what does not go together."""
    if args.pool is None:
        if args.deployments is not None or args.nodes is not None or args.between:
            raise UsageError("--deployments, --nodes and --between are of a pool: give --pool NAME")
        return
    if args.matrix:
        raise UsageError("--matrix: not with --pool, whose nodes may not see the file")
    if not 0 <= args.between < 1e6:
        raise UsageError(f"--between {args.between}: give seconds, from 0 to below 1e6")
    if args.check is not None and (args.deployments is not None or args.between):
        raise UsageError("--deployments and --between: not with --check, which holds nodes once")
    if args.between and args.deployments is None and args.suite is None:
        raise UsageError("--between: of several deployments: add --deployments N")


def nodes_of(args: argparse.Namespace) -> int:
    """How many nodes of a pool are measured on."""
    from flowos.operations.deployments import USUAL_NODES

    return args.nodes or USUAL_NODES


def deployment_of(args: argparse.Namespace, baseline: Baseline | None) -> "DeploymentRequest":
    """What `--pool` asks for. Raises UsageError for another count of nodes than the baseline's."""
    from flowos.operations.deployments import DeploymentRequest

    if baseline is not None and baseline.nodes != (args.nodes or baseline.nodes):
        raise UsageError(f"--nodes {args.nodes}: the baseline is of {baseline.nodes}")
    return DeploymentRequest(
        pool=args.pool,
        nodes=nodes_of(args) if baseline is None else baseline.nodes,
        count=args.deployments or 1,
        between_seconds=args.between,
    )


def run_deployments(
    args: argparse.Namespace,
    request: MeasurementRequest,
    wanted: "DeploymentRequest",
    seconds: float | None,
) -> int:
    """Measure, and show what differs between deployments; the exit code as the help says it."""
    from flowos.operations.deployments import measured_deployments
    from flowos.report import deployments_text

    with live_of(args) as live:
        found = measured_deployments(
            request,
            wanted,
            out=args.out,
            url=args.store,
            seconds=seconds,
            on_progress=live.show,
            on_sample=live.show_sample,
        )
    if args.json:
        print_json(found)
    else:
        print_folded(deployments_text(found.runs, found.spreads), end="")
    code = FAILED if found.unfinished or not found.spreads else 0
    notes(found.notes, failed=bool(code) or found.page is None)
    if found.page is not None:
        note(f"written: {found.page}")
    if not found.spreads:
        _say_unmeasured(found.runs)
    if found.interrupted:
        return how_ended()[0]
    return code


def _say_unmeasured(runs: Sequence[Run]) -> None:
    for run in runs:
        for name, why in dict.fromkeys((case.probe, why.reason) for case, why in run.unmeasured):
            print(f"{name} was not measured: {why}; flowos show {run.id}", file=sys.stderr)
