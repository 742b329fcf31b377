"""`flowos solve`: a system of equations with a symmetric positive definite sparse matrix."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from flowos.cli._live import on_a_terminal
from flowos.cli._output import print_folded, print_json, text_width
from flowos.cli._shared import add_json, positive, top_command
from flowos.solver import Coarse, Nullspace, Precision

if TYPE_CHECKING:
    from flowos.operations.solve import Solved, SolvePlan, SolveRequest
    from flowos.solver import SolverKeywords

_MAX_RTOL = 1e300


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "solve",
        "flowos solve poisson:128x128x128\n"
        "         flowos solve matrix.mtx.gz --rhs b.npy --out x.npy --plot residual.html",
    )
    command.add_argument(
        "what",
        metavar="MATRIX",
        help="a Matrix Market file (.mtx, .mtx.gz, the SuiteSparse collection's .tar.gz), "
        "poisson:NXxNYxNZ (7 points, -1 and 6), or g3like[:SEED], a generated circuit",
    )
    _add_system(command)
    _add_options(command)
    _add_output(command)


def _add_system(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rhs",
        default="ones",
        metavar="WHAT",
        help="right-hand side: ones (default), random[:SEED], or NAME.npy",
    )
    command.add_argument(
        "--rtol",
        type=_up_to(_MAX_RTOL),
        default=1e-7,
        metavar="R",
        help="until ||b - A x|| <= R ||b|| (default 1e-7)",
    )
    command.add_argument("--maxiter", type=positive, metavar="N", help="iterations at most")
    triangles = command.add_mutually_exclusive_group()
    triangles.add_argument(
        "--lower", action="store_true", help="look at the lower triangle alone of a general file"
    )
    triangles.add_argument(
        "--symmetrize", action="store_true", help="take (A + A') / 2 of a general file"
    )


def _add_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("method", "What is left out is chosen from the matrix.")
    group.add_argument(
        "--threads", type=_whole("threads"), metavar="N", help="x is the same with any"
    )
    group.add_argument("--block", type=_whole("block"), metavar="N", help="rows of a block")
    group.add_argument("--colours", type=_whole("colours"), metavar="N", help="at least so many")
    group.add_argument(
        "--relax",
        type=_up_to(1),
        metavar="R",
        help="dropped fill to the diagonal: 0 (IC) to 1 (MIC)",
    )
    group.add_argument("--precision", choices=get_args(Precision), default="auto")
    group.add_argument(
        "--coarse",
        choices=get_args(Coarse),
        default="auto",
        help="a coarse correction, so that iterations do not grow with the problem",
    )
    group.add_argument(
        "--nullspace", choices=get_args(Nullspace), help="where A times ones is 0 (pure Neumann)"
    )


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=_array_file, metavar="NAME.npy", help="write x there")
    command.add_argument(
        "--plot", type=_plot_file, metavar="FILE", help="the residual as NAME.svg or NAME.html"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would be solved")
    add_json(command)


def _whole(option: str) -> Callable[[str], int]:
    """A whole number, as large as the solver takes it."""

    def number(word: str) -> int:
        from flowos.operations.solve import MAX_OPTIONS

        maximum = MAX_OPTIONS[option]
        if not (word.isdecimal() and len(word) < 20 and 1 <= int(word) <= maximum):
            raise argparse.ArgumentTypeError(f"{word:.40}: expected a whole number, 1 to {maximum}")
        return int(word)

    return number


def _up_to(maximum: float) -> Callable[[str], float]:
    def number(word: str) -> float:
        if not 0 <= (given := float(word)) <= maximum:
            raise argparse.ArgumentTypeError(f"{word}: expected a number, 0 to {maximum:g}")
        return given

    return number


def _array_file(word: str) -> Path:
    return _file(word, (".npy",))


def _plot_file(word: str) -> Path:
    return _file(word, (".svg", ".html"))


def _file(word: str, suffixes: tuple[str, ...]) -> Path:
    """Better now than when all is computed."""
    path = Path(word)
    if path.suffix not in suffixes:
        raise argparse.ArgumentTypeError(f"{word!r} must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{str(path.parent)!r} is no folder")
    return path


def run(args: argparse.Namespace) -> int:
    from flowos.operations import solve

    request = _request(args)
    if args.dry_run:
        _show_planned(solve.planned(request), args.json)
        return 0
    with on_a_terminal(args) as on_progress:
        done, x = solve.solved(request, on_progress)
    try:
        if args.out:
            solve.keep(x, args.out)
        if args.plot:
            solve.draw(done, args.plot)
    finally:
        _show(done, args.json)  # also what could not be kept was computed
    return 0 if done.converged else 1


def _request(args: argparse.Namespace) -> "SolveRequest":
    from flowos.operations.solve import SolveRequest

    options: SolverKeywords = {
        "lower": args.lower,
        "symmetrize": args.symmetrize,
        "block": args.block,
        "colours": args.colours,
        "relax": args.relax,
        "precision": args.precision,
        "coarse": args.coarse,
        "nullspace": args.nullspace,
        "threads": args.threads,
    }
    return SolveRequest(
        what=args.what, rhs=args.rhs, rtol=args.rtol, maxiter=args.maxiter, options=options
    )


def _show_planned(planned: "SolvePlan", as_json: bool) -> None:
    if as_json:
        print_json(planned)
        return
    print_folded(
        f"{planned.system}: {planned.rows} rows, {planned.entries} entries, "
        f"right-hand side {planned.rhs}, to a residual of {planned.rtol:g}"
    )


def _show(done: "Solved", as_json: bool) -> None:
    from flowos.operations.solve import facts, summary
    from flowos.report import convergence_text

    if as_json:
        print_json(done)
        return
    print_folded(f"{done.planned.system}: {summary(done)}")
    for what, words in facts(done):
        print_folded(f"  {what.lower()}: {words}")
    print()
    print(convergence_text(done.plot, text_width(79)), end="")
