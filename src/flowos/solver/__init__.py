"""The Python face of the solver."""

from flowos.solver._csr import Csr
from flowos.solver._files import read_matrix
from flowos.solver._options import MAX_OPTIONS, SolverKeywords, SolverOptions
from flowos.solver._problems import g3like, poisson
from flowos.solver._solver import WHY, Callback, Info, SetupSummary, Solver, solve, vector

__all__ = [
    "MAX_OPTIONS",
    "WHY",
    "Callback",
    "Csr",
    "Info",
    "SetupSummary",
    "Solver",
    "SolverKeywords",
    "SolverOptions",
    "g3like",
    "poisson",
    "read_matrix",
    "solve",
    "vector",
]
