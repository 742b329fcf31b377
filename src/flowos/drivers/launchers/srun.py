"""Slurm's srun: ranks on the nodes of a job, as a step of it."""

from collections.abc import Collection
from pathlib import PurePath
from typing import cast

from flowos._dataclasses import dataclass
from flowos.drivers._base import (
    ALLOCATION,
    ONE_RANK,
    REFUSES_MPICH,
    REFUSES_OPEN_MPI,
    MpiFamily,
)
from flowos.model import CUDA, Argv, Launch, LaunchFailed, Pairs

_SPEAKS = {"openmpi": "pmix", "mpich": "pmi2", "": "none"}
"""What srun and the MPI of a program have in common. Every other pair ends badly: MPICH under pmix
or none runs as so many worlds of one rank, without any message; Open MPI under pmi2 or none aborts.
"""

_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH and its like"}
_OF_RANK = {"openmpi": ("PMIX_", "OMPI_"), "mpich": ("PMI_",), "": ()}
_OTHER_GPUS = ("ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
"""Variables that say which GPUs Slurm gave to the step, besides that of CUDA."""
_GUARDS = {"openmpi": (REFUSES_MPICH,), "mpich": (REFUSES_OPEN_MPI,), "": ()}
_INSIDE = {"openmpi": (("PMIX_MCA_gds", "hash"),), "mpich": (), "": ()}
"""Slurm's PMIx also keeps what ranks ask for in files of its own folder, which no image shows."""


@dataclass(frozen=True, slots=True)
class Srun:
    """job: the number of the job. mpi: whose the program is, "openmpi" or "mpich"; "" without one.

    nodes: of the job, those on which the ranks are, evenly; all of them by default. shares: one
    rank gets all CPUs of its node, unbound: what it starts is bound by others. binds: Slurm binds
    steps. overlaps: see `SlurmConfig`. in_image: ranks are in one. uses_mpi: False where ranks
    only ask for their number. forwards_gpus: CUDA gets all GPUs of the step from Slurm.

    The step shares the cores of the job with other steps; the site says how ranks are bound.
    `env_kept` is how srun finds the cluster.
    """

    job: str = ""
    mpi: str = ""
    nodes: tuple[str, ...] = ()
    mpirun: str = "srun"
    oversubscribe: bool = False
    shares: bool = False
    binds: bool = True
    overlaps: bool = True
    in_image: bool = False
    uses_mpi: bool = True
    forwards_gpus: bool = True
    env_overridden: tuple[str, ...] = ONE_RANK
    env_blocked: tuple[str, ...] = ALLOCATION
    env_kept: tuple[str, ...] = ("SLURM_CONF",)
    signals_owned: tuple[str, ...] = ("SIGINT", "SIGTERM")

    def __post_init__(self) -> None:
        if self.mpi not in _SPEAKS:
            raise LaunchFailed(f"srun starts ranks of openmpi or mpich, not of {self.mpi!r}")

    @property
    def name(self) -> str:
        return f"srun-{self.mpi}" if self.mpi else "srun"

    @property
    def family(self) -> MpiFamily | None:
        return cast("MpiFamily", self.mpi) if self.mpi else None

    @property
    def env_forwarded(self) -> tuple[str, ...]:
        gpus = (CUDA,) * self.forwards_gpus
        return ("SLURM_", "SLURMD_", *gpus, *_OTHER_GPUS, *_OF_RANK[self.mpi])

    @property
    def guards(self) -> Pairs:
        return (*_GUARDS[self.mpi], *_INSIDE[self.mpi] * self.in_image)

    def kept_in(self, folder: PurePath, memory: PurePath) -> Pairs:  # noqa: ARG002
        """Nothing: these folders are of this node, and the ranks may be on others."""
        return ()

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        if launch.ranks > 1 and self.uses_mpi and not self.mpi:
            raise LaunchFailed(
                f"{launch.argv[0]}: {launch.ranks} ranks need to know of which MPI the program is"
            )
        return (
            self.mpirun,
            *(f"--jobid={self.job}",) * bool(self.job),
            *("--overlap",) * self.overlaps,
            *(f"--mpi={_SPEAKS[self.mpi]}", "-n", str(launch.ranks)),
            *self._placement(launch.needs.cores),
            "--kill-on-bad-exit=1",
            *(self._evenly(launch.ranks) or ("--no-kill",)),
            *argv,
        )

    def _evenly(self, ranks: int) -> Argv:
        """Over several nodes; the end of one of them ends all, as ranks wait for each other."""
        several = len(self.nodes) > 1 and ranks > 1
        return (f"--ntasks-per-node={-(-ranks // len(self.nodes))}",) if several else ()

    def _placement(self, cores: int) -> Argv:
        where = (f"--nodes={len(self.nodes)}", f"--nodelist={','.join(self.nodes)}")
        cpus: Argv = ("--overcommit",) if self.oversubscribe else (f"--cpus-per-task={cores}",)
        if self.shares:  # to name a number of CPUs would bind to the first ones
            cpus = ("--cpu-bind=none",) * self.binds
        return (*where * bool(self.nodes), *cpus)


def types_words() -> Argv:
    return ("srun", "--mpi=list")


def read_types(text: str) -> tuple[str, ...]:
    """Of `types_words`, which answers on either stream: what its --mpi may be."""
    lines = [line.removeprefix("srun:").strip() for line in text.splitlines()]
    heads = [i for i, line in enumerate(lines) if line.endswith("types are...")]
    found = lines[heads[0] + 1 :] if heads else []
    return tuple(line for line in found if line and " " not in line)


def refusal_of_types(mpi: str, types: Collection[str]) -> str:
    """Why srun starts no ranks of this MPI, where its --mpi may be one of `types`; or "".

    Without any they are not known.
    """
    if not types or _is_spoken(mpi, types):
        return ""
    others = [name for other, name in _NAMES.items() if _is_spoken(other, types)]
    mended = f"have the site install Slurm's plugin mpi/{_SPEAKS[mpi]}"
    mended += f", or build the program with {others[0]}" if others else ""
    return (
        f"srun here has no --mpi={_SPEAKS[mpi]}, which ranks of {_NAMES[mpi]} need "
        f"({', '.join(types)}); {mended}"
    )


def _is_spoken(mpi: str, types: Collection[str]) -> bool:
    return any(each == _SPEAKS[mpi] or each.startswith(f"{_SPEAKS[mpi]}_") for each in types)
