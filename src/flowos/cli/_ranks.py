"""The options by which a person asks for ranks of an MPI program."""

import argparse
from typing import TYPE_CHECKING

from flowos._dataclasses import replace
from flowos.cli._shared import whole
from flowos.model import MPIS, UsageError

if TYPE_CHECKING:
    from flowos.operations.exec import ExecRequest


def add_ranks(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--ranks",
        type=whole,
        metavar="N",
        help="start N ranks of an MPI program with this machine's mpirun; each on a core, inside",
    )
    command.add_argument(
        "--mpi",
        choices=MPIS,
        help="whose mpirun starts them; the same MPI has to be in the image",
    )
    command.add_argument(
        "--mpirun", metavar="PATH", help="its path, where it is not the first in PATH"
    )
    command.add_argument(
        "--oversubscribe",
        action="store_true",
        help="start more ranks than there are cpus too; then they are not bound to cores",
    )


def with_ranks(args: argparse.Namespace, request: "ExecRequest") -> "ExecRequest":
    from flowos.operations.exec import RankOptions

    if args.ranks is None and args.mpi is None and not (args.mpirun or args.oversubscribe):
        return request
    if args.ranks is None or args.ranks < 1 or args.mpi is None:
        raise UsageError(f"ranks need both: --ranks N (at least 1) and --mpi {' or '.join(MPIS)}")
    ranks = RankOptions(
        count=args.ranks,
        mpi=args.mpi,
        mpirun=args.mpirun or "",
        oversubscribe=args.oversubscribe,
    )
    return replace(request, ranks=ranks)
