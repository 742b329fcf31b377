"""Systems of equations with symmetric positive definite sparse matrices: `fo.solve`, `fo.Solver`.

Conjugate gradients preconditioned by incomplete Cholesky factors in block multi-colour order, or by
a multigrid cycle. The answer is the same, bit for bit, whatever the number of threads, the compiler
and the kind of x86-64; and the MPI program gives it, too, whatever the number of ranks.
"""

import os
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from math import isfinite
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowos._dataclasses import dataclass, field
from flowos._signatures import with_keywords
from flowos.model import SolveError, brief_repr
from flowos.report import ConvergencePlot, convergence_cell
from flowos.solver._csr import as_csr
from flowos.solver._options import SolverKeywords, SolverOptions, is_number, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowos._native import SolverInfo

StopReason: TypeAlias = Literal[
    "converged", "iterations", "indefinite", "stagnated", "stopped", "inconsistent"
]
Vector: TypeAlias = NDArray[np.float64]
Callback: TypeAlias = Callable[[int, float], object]
"""Called after each iteration with its number and the estimated relative residual. False: stop."""

_MAX_ITERATIONS = 2**62
_LARGEST = 1.7e308
_TORN = (
    "Solver: it was busy in another thread when this process was forked, and what it holds is half "
    "changed; make one here"
)

WHY: dict[StopReason, str] = {
    "converged": "converged",
    "iterations": "not converged: all the iterations that were allowed are done",
    "indefinite": "not converged: A is not positive definite",
    "stagnated": "not converged: the residual falls no more",
    "stopped": "not converged: stopped by callback",
    "inconsistent": "not converged: nothing solves it, as b does not add up to 0; "
    "x solves it for b less its mean",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupSummary:
    """Statistics of the set-up.

    blocks: such as "tiles 8x8x8" or "grown 32"; "points": rows have colours of their own.
    shift: by how much of the diagonal a pivot of the factor was raised, at most; 0 where rows are
    diagonally dominant. fill: stored entries over those of the matrix. bytes_per_iteration: those
    that it must move; flops_per_iteration: those that its sweeps do, with the zeros that fill lanes
    of vectors. Neither is counted by the processor.

    >>> import scipy.sparse
    >>> setup = fo.Solver(scipy.sparse.diags_array([4.0, 2.0])).setup
    >>> setup.levels, setup.shift, setup.seconds < 60
    (1, 0.0, True)
    """

    blocks: str
    block_rows: int
    colours: int
    levels: int
    relax: float
    shift: float
    eisenstat: bool
    fill: float
    bytes_per_iteration: int
    flops_per_iteration: int
    memory_bytes: int
    order_seconds: float
    factor_seconds: float
    store_seconds: float
    coarse_seconds: float

    @property
    def seconds(self) -> float:
        """The whole set-up."""
        return self.order_seconds + self.factor_seconds + self.store_seconds + self.coarse_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """Result of a solve. residual: ||b - A x|| / ||b||, computed in fp64 from x as it is.

    solved_residual: the same, but with nullspace="constant" of b less its mean, which is all that
    can be solved for. Where the mean alone is too much, the reason is "inconsistent".
    precision: in which the iteration ended; fp32 goes on in fp64 where it would stagnate.
    seconds: of the iteration; `setup.seconds` are those of the set-up. residuals: as estimated
    after each iteration; a notebook draws them.

    >>> import scipy.sparse
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100))
    >>> x, info = fo.solve(A, np.ones(100))
    >>> print(info)
    converged; ... iterations, residual ...
    >>> info.converged, info.residual < 1e-7, info.shift
    (True, True, 0.0)
    """

    reason: StopReason
    iterations: int
    residual: float
    solved_residual: float
    precision: Literal["fp32", "fp64"]
    fp64_updates: int
    seconds: float
    setup: SetupSummary
    residuals: tuple[float, ...] = field(default=(), repr=False)

    @property
    def converged(self) -> bool:
        """Whether x is as exact as was asked for."""
        return self.reason == "converged"

    @property
    def shift(self) -> float:
        """That of the set-up."""
        return self.setup.shift

    @property
    def residual_in_words(self) -> str:
        """The residual as people say it."""
        if self.reason != "inconsistent":
            return f"residual {self.residual:.2e}"
        return f"residual {self.solved_residual:.2e}, but {self.residual:.2e} of b as it was given"

    def __str__(self) -> str:
        return f"{WHY[self.reason]}; {self.iterations} iterations, {self.residual_in_words}"

    def _repr_html_(self) -> str:
        plot = ConvergencePlot(title="Convergence", points=tuple(enumerate(self.residuals, 1)))
        return convergence_cell(plot, str(self))


class Solver:
    """A matrix factored once, for many right-hand sides, one after another.

        solver = fo.Solver(A)
        x, info = solver.solve(b)

    A: symmetric positive definite, of scipy.sparse; float64 CSR (or CSC) is not copied. After a
    change of its values make another Solver: the residual that a solve reports is that of A as it
    is then, and with this one it converges slowly or not at all.
    Keywords; defaults are chosen from the matrix, and `setup` shows them.
    lower: only the lower triangle of A is used; an upper one is refused. symmetrize: (A + A') / 2
    is solved with.
    block: rows of a block. colours: at least so many. relax: share of the dropped fill that goes to
    the diagonal, 0 (IC) to 1 (MIC). precision: "auto", "fp32" or "fp64", of the iteration; answers
    are always fp64. coarse: "auto", "none" or "aggregates", a coarse correction, which keeps
    iterations from growing with the problem. nullspace: "constant" where A times ones is 0; x then
    has mean 0. threads: None is OMP_NUM_THREADS, or else one for each processor that this process
    may use; the answer does not depend on it.
    Raises SolveError if A cannot be solved with: the row, the reason, and how to mend it.

    >>> import scipy.sparse
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100))
    >>> solver = fo.Solver(A, threads=1)
    >>> solver.shape, solver.setup.shift
    ((100, 100), 0.0)
    >>> for b in (np.ones(100), np.arange(100.0)):
    ...     x, info = solver.solve(b, rtol=1e-9)
    ...     info.converged
    True
    True
    """

    @with_keywords(SolverKeywords, SolverOptions)
    def __init__(self, A: object, **options: Unpack[SolverKeywords]) -> None:  # noqa: N803 - as in every textbook
        from flowos._native import Solver as Native

        chosen = SolverOptions.of(options)
        matrix = as_csr(A, lower=chosen.lower, symmetrize=chosen.symmetrize)
        self._rows = matrix.shape[0]
        self._native = Native(matrix.indptr, matrix.indices, matrix.data, chosen.settings)
        self._turn, self._at_work, self._is_torn = Lock(), 0, False
        _solvers.add(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self._rows, self._rows

    @property
    def setup(self) -> SetupSummary:
        """What was chosen for the matrix, and what it took."""
        setup = self._native.setup
        return SetupSummary(
            **{name: getattr(setup, name) for name in SetupSummary.__dataclass_fields__}
        )

    def solve(
        self,
        b: ArrayLike,
        x0: ArrayLike | None = None,
        *,
        rtol: float = 1e-7,
        atol: float = 0.0,
        maxiter: int | None = None,
        callback: Callback | None = None,
    ) -> tuple[Vector, Info]:
        """x with ||b - A x|| <= max(rtol * ||b||, atol), or the last iterate; and the `Info`.

        b, x0: real, (rows,) or (rows, 1), as x then is. maxiter: None is ten times the rows,
        and 1000 at least. callback: see `Callback`. Where either ends the iteration, x is the last
        iterate: closer to the solution in A's norm than any before, even where its residual is
        larger than b. Raises SolveError for an invalid b or x0.
        """
        _check_goal(rtol, atol, maxiter, callback)
        right = _real_vector("b", b, self._rows)
        x = np.zeros(self._rows) if x0 is None else _real_vector("x0", x0, self._rows).copy()
        with self._alone():
            found = self._native.solve(right, x, rtol, atol, maxiter or 0, callback)
        return x.reshape(np.shape(b)), self._info(found)

    def precondition(self, r: ArrayLike) -> Vector:
        """M^-1 r, (rows,): what the conjugate gradients apply in each iteration.

        >>> import scipy.sparse
        >>> fo.Solver(scipy.sparse.eye_array(2)).precondition([4.0, 2.0])
        array([4., 2.])
        """
        right = _real_vector("r", r, self._rows)
        z = np.empty(self._rows)
        with self._alone():
            self._native.precondition(right, z)
        return z

    def as_linear_operator(self) -> Any:
        """M^-1 as a scipy.sparse.linalg.LinearOperator, for scipy's cg(A, b, M=...).

        >>> import scipy.sparse.linalg
        >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100))
        >>> M = fo.Solver(A).as_linear_operator()
        >>> x, failed = scipy.sparse.linalg.cg(A, np.ones(100), M=M)
        >>> failed
        0
        """
        try:
            from scipy.sparse.linalg import LinearOperator
        except ImportError:
            raise SolveError("as_linear_operator: SciPy is missing; pip install scipy") from None
        apply = self.precondition
        return LinearOperator(self.shape, matvec=apply, rmatvec=apply, dtype=np.float64)

    def _info(self, found: "SolverInfo") -> Info:
        names = [name for name in Info.__dataclass_fields__ if name != "setup"]
        return Info(setup=self.setup, **{name: getattr(found, name) for name in names})

    @contextmanager
    def _alone(self) -> "Iterator[None]":
        """Other threads wait for their turn; from within a turn nothing can be asked."""
        if self._at_work == get_ident():
            raise SolveError("Solver: its callback cannot call it; it is busy")
        if self._is_torn:
            raise SolveError(_TORN)
        with self._turn:
            self._at_work = get_ident()
            try:
                yield
            finally:
                self._at_work = 0

    def _forked(self) -> None:
        """In a child: a solve under way in a thread that is not here will never end."""
        if self._turn.locked() and self._at_work != get_ident():
            self._turn, self._is_torn = Lock(), True


_solvers: "weakref.WeakSet[Solver]" = weakref.WeakSet()


def _in_child() -> None:
    for solver in list(_solvers):
        solver._forked()


os.register_at_fork(after_in_child=_in_child)


@with_keywords(SolverKeywords, SolverOptions)
def solve(
    A: object,  # noqa: N803 - as in every textbook
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-7,
    atol: float = 0.0,
    maxiter: int | None = None,
    callback: Callback | None = None,
    **options: Unpack[SolverKeywords],
) -> tuple[Vector, Info]:
    """Shortcut for `Solver(A, **options).solve(b, ...)`; see there for the keywords.

    x, info = fo.solve(A, b)

    >>> import scipy.sparse
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100))
    >>> x, info = fo.solve(A, np.ones(100))
    >>> info.converged, bool(abs(A @ x - 1).max() < 1e-5)
    (True, True)
    """
    solver = Solver(A, **options)
    return solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback)


def vector(name: str, given: ArrayLike, rows: int) -> Vector:
    """Finite real numbers, (rows,), to be solved for later. Raises SolveError for anything else."""
    values = _real_vector(name, given, rows)
    if not isfinite(_largest(values)):
        bad = np.flatnonzero(~np.isfinite(values))[0]
        raise SolveError(f"{name}[{bad}] is {values[bad]}: expected finite numbers")
    return values


def _real_vector(name: str, given: ArrayLike, rows: int) -> Vector:
    """Real numbers, (rows,): what is not finite, the native solver refuses in the same words.

    Raises SolveError for anything else.
    """
    if np.ma.is_masked(given):
        raise SolveError(f"{name} has masked values: fill them, as with {name}.filled(0)")
    if hasattr(given, "toarray"):
        raise SolveError(f"{name} is sparse: give {name}.toarray()")
    try:
        array = np.asarray(given)
    except Exception as why:  # rows of different lengths, a tensor with a gradient: as it likes
        raise SolveError(
            f"{name}={brief_repr(given)}: expected ({rows},) real numbers; NumPy makes no array "
            f"of it: {' '.join(str(why).split())}"
        ) from None
    if array.dtype.kind not in "biuf":
        raise SolveError(f"{name} holds {array.dtype}: expected real numbers")
    if array.shape not in ((rows,), (rows, 1)):
        raise SolveError(
            f"{name} has shape {array.shape}: expected ({rows},), one right-hand side at a time"
        )
    with np.errstate(over="ignore"):  # what is too large is refused as infinite
        return np.ascontiguousarray(array.reshape(rows), np.float64)


def _largest(values: Vector) -> float:
    return float(max(values.max(), -values.min()))


def _check_goal(rtol: float, atol: float, maxiter: int | None, callback: object) -> None:
    for name, given in (("rtol", rtol), ("atol", atol)):
        if not is_number(given, max_=_LARGEST):
            raise SolveError(f"{name}={brief_repr(given)}; expected a number from 0 on")
    if maxiter is not None and not is_whole(maxiter, _MAX_ITERATIONS):
        raise SolveError(f"maxiter={brief_repr(maxiter)}; expected a whole number, 1 to 2**62")
    if callback is not None and not callable(callback):
        raise SolveError(f"callback={brief_repr(callback)}; expected a function, or None")
