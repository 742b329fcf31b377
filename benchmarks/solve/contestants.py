"""The contestants, as data: each is a small program of its own, solve_*.{py,cpp}."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from building import HERE, mpirun, program, python_of_peers

Options = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """`cores`: number of cores, 0 for all; `ranks`: uses them by MPI, not by threads.
    `variants`: options of which the first round finds the best; ours has only one.
    """

    name: str
    title: str
    program: str
    variants: tuple[Options, ...] = ((),)
    cores: int = 0
    ranks: bool = False

    def cores_of(self, all_cores: int) -> int:
        return self.cores or all_cores


OURS = Contestant(name="ours", title="FlowOS", program="ours")
OURS_OTHERWISE = (
    Contestant(
        name="ours-fp32",
        title="FlowOS, IC alone, FP32",
        program="ours",
        variants=(("precision=fp32", "coarse=none"),),
    ),
    Contestant(
        name="ours-fp64",
        title="FlowOS, IC alone, FP64",
        program="ours",
        variants=(("precision=fp64", "coarse=none"),),
    ),
    Contestant(name="ours-1", title="FlowOS, 1 core", program="ours", cores=1),
)

ICC: Options = ("-pc_type", "bjacobi", "-sub_pc_type", "icc")
GAMG: Options = ("-pc_type", "gamg")
GAMG_VARIANTS = (
    GAMG,
    (*GAMG, "-pc_gamg_threshold", "0.02"),
    (*GAMG, "-mg_levels_pc_type", "sor"),
)
BOOMER_VARIANTS = (("0.25", "0"), ("0.5", "0"), ("0.5", "1"))
HIERARCHIES = ("sa", "ruge-stuben")

PEERS = (
    Contestant(
        name="petsc-icc-1", title="PETSc ICC(0), 1 rank", program="petsc",
        variants=(ICC,), cores=1, ranks=True,
    ),
    Contestant(
        name="petsc-icc", title="PETSc bjacobi/ICC(0)", program="petsc",
        variants=(ICC,), ranks=True,
    ),
    Contestant(
        name="petsc-gamg-1", title="PETSc GAMG, 1 rank", program="petsc",
        variants=GAMG_VARIANTS, cores=1, ranks=True,
    ),
    Contestant(
        name="petsc-gamg", title="PETSc GAMG", program="petsc",
        variants=GAMG_VARIANTS, ranks=True,
    ),
    Contestant(
        name="hypre-1", title="hypre BoomerAMG, 1 rank", program="hypre",
        variants=BOOMER_VARIANTS, cores=1, ranks=True,
    ),
    Contestant(
        name="hypre", title="hypre BoomerAMG", program="hypre",
        variants=BOOMER_VARIANTS, ranks=True,
    ),
    Contestant(
        name="amgcl-f32", title="AMGCL, FP32 hierarchy", program="amgcl",
        variants=tuple(("float", kind) for kind in HIERARCHIES),
    ),
    Contestant(
        name="amgcl", title="AMGCL", program="amgcl",
        variants=tuple(("double", kind) for kind in HIERARCHIES),
    ),
    Contestant(
        name="amgcl-ilu0", title="AMGCL ILU(0)", program="amgcl",
        variants=(("double", "ilu0"), ("float", "ilu0")),
    ),
    Contestant(
        name="eigen", title="Eigen IncompleteCholesky", program="eigen",
        variants=(("natural",), ("amd",)),
    ),
    Contestant(name="ilupp", title="SciPy cg + ilupp IChol0", program="ilupp", cores=1),
    Contestant(name="pyamg", title="PyAMG + SciPy cg", program="pyamg", cores=1),
)  # fmt: skip

ALL: Mapping[str, Contestant] = {one.name: one for one in (OURS, *OURS_OTHERWISE, *PEERS)}


def command(contestant: Contestant, all_cores: int, folder: Path) -> Sequence[str]:
    """The command line without arguments. Raises NotHere if it cannot be compiled."""
    if contestant.program == "ours":
        return (sys.executable, str(HERE / "solve_ours.py"))
    if contestant.program in ("ilupp", "pyamg"):
        return (str(python_of_peers(folder)), str(HERE / f"solve_{contestant.program}.py"))
    found = str(program(contestant.program, folder))
    if contestant.ranks:
        return (*mpirun(contestant.cores_of(all_cores)), found)
    return (found,)
