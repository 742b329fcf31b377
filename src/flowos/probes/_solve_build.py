"""How the solver's program of many ranks is compiled: by an MPI's wrapper, with the library."""

import shlex

from flowos.model import Case, Mpi, Pairs
from flowos.probes._build import Build

FOLDER = "solver/native"
SOURCE = "mpi/solve_mpi.cpp"
LIBRARY_SOURCES = (
    "base/at_once.cpp",
    "base/exact_sum.cpp",
    "base/for_each.cpp",
    "ic/factor.cpp",
    "ic/kernels.cpp",
    "ic/kernels_v3.cpp",
    "ic/kernels_v4.cpp",
    "krylov/defaults.cpp",
    "matrix/assemble.cpp",
    "matrix/check.cpp",
    "matrix/generate.cpp",
    "matrix/matrix_market.cpp",
    "matrix/properties.cpp",
    "multigrid/aggregates.cpp",
    "multigrid/galerkin.cpp",
    "multigrid/grown_aggregates.cpp",
    "multigrid/hierarchy.cpp",
    "multigrid/kernels.cpp",
    "multigrid/kernels_v3.cpp",
    "multigrid/kernels_v4.cpp",
    "multigrid/stencil.cpp",
    "multigrid/transfer.cpp",
    "ordering/tiles.cpp",
    "ordering/colouring.cpp",
    "ordering/graph.cpp",
    "ordering/grid.cpp",
    "ordering/grow.cpp",
    "ordering/placement.cpp",
    "ordering/points.cpp",
    "ordering/traversal.cpp",
    "simd/even_lanes.cpp",
    "simd/lanes_matrix.cpp",
    "threads/team.cpp",
)
"""Sources of the solver's library that the program needs."""
FLAGS = (
    *("-std=c++20", "-O3", "-ffp-contract=off", "-fopenmp"),
    *("-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"),  # obsolete bindings, not needed
)
NATIVE_FLAGS = {"aarch64": "-mcpu=native"}
"""By architecture; others get -march=native. x is the same bits without it too."""
LIBRARIES = ("-ldl",)


def compilers_of(mpi: Mpi) -> Pairs:
    """Details of a case for `solver_build`."""
    return (
        ("compiler", str(mpi.cxx)),
        ("version", mpi.version),
        ("called", shlex.join(mpi.cxx_calls)),
        ("called_version", mpi.cxx_version),
    )


def solver_build(case: Case) -> Build:
    """The library uses no MPI, and is compiled once for all whose wrappers call one compiler."""
    called_version = case.detail("called_version")
    return Build(
        source=SOURCE,
        also=LIBRARY_SOURCES,
        folder=FOLDER,
        include_folder=True,
        compiler=case.detail("compiler"),
        compiler_version=f"{case.detail('version')} {called_version}".rstrip(),
        also_compiler=tuple(shlex.split(case.detail("called"))),
        also_version=called_version,
        flags=(*FLAGS, *case.detail("native").split()),
        libraries=LIBRARIES,
    )
