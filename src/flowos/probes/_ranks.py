"""How an installed MPI program is started on all cores of this machine."""

from flowos._dataclasses import dataclass
from flowos.model import Facts, Mpi, Pairs, Tool

STARTS = {"openmpi": ("openmpi",), "mpich": ("mpich", "intel", "mvapich")}
"""Family of a program's MPI -> families whose mpirun starts it."""


@dataclass(frozen=True, slots=True)
class RankLayout:
    """So many ranks by this MPI, or one of many threads if no mpirun fits the program."""

    ranks: int
    threads: int
    mpi: Mpi | None

    @property
    def details(self) -> Pairs:
        started = (
            (("family", self.mpi.family), ("mpirun", str(self.mpi.mpirun))) if self.mpi else ()
        )
        return (("ranks", str(self.ranks)), ("threads", str(self.threads)), *started)


def ranks_of(tool: Tool, facts: Facts, cores: int) -> RankLayout:
    """A rank on each core."""
    families = STARTS.get(tool.mpi, ())
    mpi = next((mpi for mpi in facts.mpis if mpi.family in families), None)
    return RankLayout(1, cores, None) if mpi is None else RankLayout(cores, 1, mpi)


def process_grid(ranks: int) -> tuple[int, int]:
    """P x Q, as near to a square as can be, and P <= Q as HPL advises."""
    p = max(p for p in range(1, ranks + 1) if p * p <= ranks and ranks % p == 0)
    return p, ranks // p
