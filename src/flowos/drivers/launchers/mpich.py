"""Hydra's mpiexec, as in MPICH, MVAPICH and Intel MPI."""

from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.drivers._base import ALLOCATION, ONE_RANK, REFUSES_OPEN_MPI, MpiFamily
from flowos.model import Argv, Launch, Pairs


@dataclass(frozen=True, slots=True)
class Hydra:
    """binding: options that give a rank `{cores}` cores. hosts: as Open MPI's.

    Hydra puts several ranks on one core without a warning, so callers must check the count first.
    """

    name: str
    binding: Argv = ()
    env_forwarded: tuple[str, ...] = ("PMI_", "PMIX_", "HYDI_", "HYDRA_", "MPI_LOCAL", "MPIR_CVAR_")
    mpirun: str = "mpiexec"
    oversubscribe: bool = False
    hosts: tuple[str, ...] = ()
    family: MpiFamily | None = "mpich"
    env_overridden: tuple[str, ...] = ONE_RANK
    env_blocked: tuple[str, ...] = ALLOCATION
    env_kept: tuple[str, ...] = ()
    guards: Pairs = (REFUSES_OPEN_MPI,)
    signals_owned: tuple[str, ...] = ()

    def kept_in(self, folder: PurePath, memory: PurePath) -> Pairs:  # noqa: ARG002
        """UCX's shared memory; other libraries unlink theirs once all ranks have it."""
        return (("UCX_POSIX_DIR", str(memory)),)

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        binding = () if self.oversubscribe else self.binding
        return (
            self.mpirun,
            *self._placement(launch.ranks),
            *("-n", str(launch.ranks)),
            *(word.format(cores=launch.needs.cores) for word in binding),
            *argv,
        )

    def _placement(self, ranks: int) -> Argv:
        if not self.hosts:
            return ()
        each = -(-ranks // len(self.hosts))
        start = "sge" if len(self.hosts) > 1 else "fork"
        return ("-launcher", start, "-hosts", ",".join(f"{host}:{each}" for host in self.hosts))
