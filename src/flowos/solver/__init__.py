"""The Python face of the solver."""

from flowos.solver._csr import Csr
from flowos.solver._files import read_matrix
from flowos.solver._options import SolverKeywords, SolverOptions
from flowos.solver._problems import g3like, poisson
from flowos.solver._solver import WHY, Info, SetupSummary, Solver, Watch, solve

__all__ = [
    "WHY",
    "Csr",
    "Info",
    "SetupSummary",
    "Solver",
    "SolverKeywords",
    "SolverOptions",
    "Watch",
    "g3like",
    "poisson",
    "read_matrix",
    "solve",
]
