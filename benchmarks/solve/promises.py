"""The table of claims, as data: matrices, contestants, and what is claimed for ours.

Every contestant has its best setting, found in the first round; ours always has its default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RTOL = 1e-7
RESIDUAL_MARGIN = 1.05
"""Other solvers stop by the residual of the recurrence, which is slightly off."""


@dataclass(frozen=True, kw_only=True)
class Faster:
    """`times`: the minimum of the other's total over ours. `goal`: is printed, not required."""

    than: str
    times: float
    goal: float | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """`matrix`: poisson:XxYxZ or g3like. `times_of_limit`: maximum time of an iteration, as a
    multiple of its bytes over STREAM's bandwidth. `slow`: contestants that take one turn.
    """

    name: str
    title: str
    matrix: str
    contestants: Sequence[str]
    rounds: int = 5
    slow: Sequence[str] = ()
    faster: Sequence[Faster] = ()
    setup_seconds: float | None = None
    times_of_limit: Mapping[str, float] = field(default_factory=dict)
    memory_bytes: float | None = None


FULL = ("ours", "ours-fp32", "ours-fp64", "petsc-icc", "amgcl-f32", "amgcl", "hypre")
SLOW = ("petsc-icc-1", "petsc-gamg-1", "petsc-gamg", "hypre-1", "amgcl-ilu0", "eigen")
PYTHON = ("ilupp", "pyamg")
GIB = 2**30

CASES: Sequence[Case] = (
    Case(
        name="poisson-64",
        title="Poisson 64^3",
        matrix="poisson:64x64x64",
        contestants=(*FULL, "ours-1", *SLOW, *PYTHON),
        slow=PYTHON,
    ),
    Case(
        name="poisson-128",
        title="Poisson 128^3",
        matrix="poisson:128x128x128",
        contestants=(*FULL, "ours-1", *SLOW, *PYTHON),
        slow=(*SLOW, *PYTHON),
        faster=(Faster(than="petsc-icc", times=5), Faster(than="amgcl-f32", times=3.5)),
        setup_seconds=0.15,
        times_of_limit={"ours-fp32": 1.5, "ours-fp64": 1.35},
    ),
    Case(
        name="poisson-256",
        title="Poisson 256 x 256 x 128",
        matrix="poisson:256x256x128",
        contestants=("ours", "ours-fp32", "petsc-icc", "amgcl-f32", "amgcl", "hypre"),
        rounds=3,
        slow=("hypre", "amgcl"),
        faster=(Faster(than="petsc-icc", times=4), Faster(than="amgcl-f32", times=3)),
    ),
    Case(
        name="poisson-paper",
        title="Poisson 256 x 256 x 512, the paper's",
        matrix="poisson:256x256x512",
        contestants=("ours", "ours-fp32"),
        rounds=2,
        times_of_limit={"ours-fp32": 1 / 0.65},
        memory_bytes=12 * GIB,
    ),
    Case(
        name="g3like",
        title="g3like, a stand-in of G3_circuit's size and degree",
        matrix="g3like",
        contestants=(*FULL, "ours-1", "petsc-icc-1", "petsc-gamg", "hypre-1", "eigen"),
        slow=("petsc-icc-1", "petsc-gamg", "hypre-1", "eigen"),
        faster=(
            Faster(than="amgcl", times=1, goal=2),
            Faster(than="amgcl-f32", times=1, goal=2),
        ),
        setup_seconds=0.2,
    ),
)
