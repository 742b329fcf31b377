"""The Python face of the solver."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_csr": "Csr",
    "_files": "read_matrix",
    "_options": "MAX_OPTIONS Coarse Nullspace Precision SolverKeywords SolverOptions",
    "_problems": "g3like poisson",
    "_solver": "WHY Callback Info SetupSummary Solver solve vector",
}

if TYPE_CHECKING:
    from flowos.solver._csr import Csr as Csr
    from flowos.solver._files import read_matrix as read_matrix
    from flowos.solver._options import (
        MAX_OPTIONS as MAX_OPTIONS,
        Coarse as Coarse,
        Nullspace as Nullspace,
        Precision as Precision,
        SolverKeywords as SolverKeywords,
        SolverOptions as SolverOptions,
    )
    from flowos.solver._problems import g3like as g3like, poisson as poisson
    from flowos.solver._solver import (
        WHY as WHY,
        Callback as Callback,
        Info as Info,
        SetupSummary as SetupSummary,
        Solver as Solver,
        solve as solve,
        vector as vector,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
