"""The Python face of the solver."""

from flowos.solver._choices import Choices, How
from flowos.solver._csr import Csr
from flowos.solver._files import read_matrix
from flowos.solver._problems import g3like, poisson
from flowos.solver._solver import WHY, Info, Made, Solver, Watch, solve

__all__ = [
    "WHY",
    "Choices",
    "Csr",
    "How",
    "Info",
    "Made",
    "Solver",
    "Watch",
    "g3like",
    "poisson",
    "read_matrix",
    "solve",
]
