"""`flowos solve`: reads or generates a system, solves it, and reports progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from math import isfinite, log
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from numpy.typing import NDArray

from flowos._dataclasses import dataclass, field
from flowos.engine import now
from flowos.model import OnProgress, Progress, SolveError
from flowos.operations._files import replaced
from flowos.operations._linear_problems import (
    given_right_side,
    in_the_commands_words,
    right_side,
    system_of,
)
from flowos.operations._progress import INTERVAL_SECONDS
from flowos.report import ConvergencePlot, convergence_html, convergence_svg, number
from flowos.solver import MAX_OPTIONS as MAX_OPTIONS
from flowos.solver import WHY, Csr, Info, Solver, SolverKeywords, vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest:
    """what: as of `system_of`; rhs: as of `right_side`; maxiter: None is the solver's own."""

    what: str
    rhs: str = "ones"
    rtol: float = 1e-7
    maxiter: int | None = None
    options: SolverKeywords = field(default_factory=SolverKeywords)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvePlan:
    """The system to be solved."""

    system: str
    rows: int
    entries: int
    rhs: str
    rtol: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """x_sha256: of the bytes of x; equal for any number of threads."""

    planned: SolvePlan
    converged: bool
    info: Info
    read_seconds: float
    setup_seconds: float
    x_sha256: str

    @property
    def plot(self) -> ConvergencePlot:
        points = tuple(enumerate(self.info.residuals, 1))
        return ConvergencePlot(title=self.planned.system, points=points, goal=self.planned.rtol)


def planned(request: SolveRequest) -> SolvePlan:
    """Describe the system; reads a right-hand side, and a matrix whose size is not known.

    Raises SolveError or UsageError for files that cannot be read, or do not fit.
    """
    system, given = system_of(request.what), given_right_side(request.rhs)
    rows, entries = system.size or _size_of(system.matrix())
    if given is not None:
        vector(request.rhs, given, rows)
    return _planned(request, system.name, rows, entries)


def solved(request: SolveRequest, on_progress: OnProgress) -> tuple[Solved, NDArray[np.float64]]:
    """The result and x. Raises SolveError or UsageError for an invalid matrix or request."""
    on_progress(Progress(doing="reading"))
    system, began = system_of(request.what), now()
    matrix = system.matrix()
    read = now()
    b = right_side(request.rhs, matrix.shape[0])
    on_progress(Progress(doing="setting up"))
    ready = now()
    history = History(request.rtol, on_progress)
    with in_the_commands_words(system.name):
        solver = Solver(matrix, **request.options)
        set_up = now()
        x, info = solver.solve(b, rtol=request.rtol, maxiter=request.maxiter, callback=history.see)
    done = Solved(
        planned=_planned(request, system.name, *_size_of(matrix)),
        converged=info.converged,
        info=info,
        read_seconds=read - began,
        setup_seconds=set_up - ready,
        x_sha256=sha256(x.tobytes()).hexdigest(),
    )
    return done, x


class History:
    """Reports residuals at most ten times a second."""

    def __init__(
        self, goal: float, on_progress: OnProgress, clock: Callable[[], float] = now
    ) -> None:
        self._goal, self._on_progress, self._clock = goal, on_progress, clock
        self._reported = -INTERVAL_SECONDS

    def see(self, iteration: int, residual: float) -> None:
        time = self._clock()
        if time - self._reported < INTERVAL_SECONDS:
            return
        self._reported = time
        self._on_progress(
            Progress(
                doing="solving",
                done=_share(residual, self._goal),
                total=1.0,
                detail=f"iteration {iteration}  residual {residual:.1e}",
            )
        )


def summary(done: Solved) -> str:
    """The result in a sentence."""
    info = done.info
    each = f", {number(info.seconds / info.iterations, 'second')} each" if info.iterations else ""
    return (
        f"{WHY[info.reason]}: {info.iterations} iterations in {number(info.seconds, 'second')}"
        f"{each}, after {number(done.setup_seconds, 'second')} of set-up; "
        f"{info.residual_in_words}"
    )


def facts(done: Solved) -> tuple[tuple[str, str], ...]:
    """What was solved and how: (what, in words)."""
    info, setup = done.info, done.info.setup
    rate = setup.bytes_per_iteration * info.iterations / info.seconds if info.seconds > 0 else 0.0
    rows = (
        ("Matrix", f"{done.planned.rows} rows, {done.planned.entries} entries"),
        ("Right-hand side", done.planned.rhs),
        ("Blocks", f"{setup.blocks}, {setup.colours} colours"),
        ("Coarse levels", str(setup.levels - 1) if setup.levels > 1 else "none"),
        ("Relaxation", f"{setup.relax:g}" if setup.relax else ""),
        ("Greatest shift of the diagonal", f"{setup.shift:g}" if setup.shift else ""),
        ("Precision", f"{info.precision}, {info.fp64_updates} residuals computed in fp64"),
        ("Memory", number(setup.memory_bytes, "byte")),
        ("Memory rate", f"{number(rate, 'byte/s')} by its own count" if rate else ""),
    )
    return tuple((what, words) for what, words in rows if words)


def draw(done: Solved, path: Path) -> None:
    """Draw the residuals as .svg, or with all facts as .html. Raises SolveError if it fails."""
    page = path.suffix == ".html"
    text = (
        convergence_html(done.plot, summary(done), facts(done))
        if page
        else convergence_svg(done.plot)
    )
    with _whole(path) as file:
        file.write(text.encode())


def keep(x: NDArray[np.float64], path: Path) -> None:
    """Write x to a .npy file. Raises SolveError if it cannot be written."""
    with _whole(path) as file:
        # Not np.save, whose errors do not say why.
        write_array_header_1_0(file, header_data_from_array_1_0(x))
        file.write(x.data)


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that is replaced once it is written completely. Raises SolveError if that fails."""
    try:
        with replaced(path) as file:
            yield file
    except OSError as error:
        raise SolveError(f"{path}: {error.strerror}; nothing was kept there") from None


def _size_of(matrix: Csr) -> tuple[int, int]:
    return matrix.shape[0], matrix.nnz


def _planned(request: SolveRequest, system: str, rows: int, entries: int) -> SolvePlan:
    return SolvePlan(system=system, rows=rows, entries=entries, rhs=request.rhs, rtol=request.rtol)


def _share(residual: float, goal: float) -> float:
    if not (0 < goal < 1 and residual > 0 and isfinite(residual)):
        return 0.0
    return min(max(log(residual) / log(goal), 0.0), 1.0)
