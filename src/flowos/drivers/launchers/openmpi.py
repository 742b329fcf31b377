"""Open MPI's mpirun (4.0 and later)."""

from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.drivers._base import ALLOCATION, ONE_RANK, REFUSES_MPICH, MpiFamily
from flowos.model import Argv, Launch, Pairs

_ROOT_MAY = tuple(
    f"{whose}_ALLOW_RUN_AS_ROOT{confirm}"
    for whose in ("OMPI", "PRTE")
    for confirm in ("", "_CONFIRM")
)
"""As variables, which have no effect for other users; an option would appear in each command."""


@dataclass(frozen=True, slots=True)
class OpenMpi:
    """mpirun itself refuses more ranks than cores unless `oversubscribe` is set.

    hosts: of a job of Grid Engine, over which the ranks are spread evenly: mpirun starts them there
    by its qrsh. Without them all are on this node.
    """

    mpirun: str = "mpirun"
    oversubscribe: bool = False
    hosts: tuple[str, ...] = ()
    name: str = "openmpi"
    family: MpiFamily | None = "openmpi"
    env_forwarded: tuple[str, ...] = (
        "OMPI_",
        "PMIX_",
        "PRTE_",
        "HFI_NO_BACKTRACE",
        "IPATH_NO_BACKTRACE",
    )
    env_overridden: tuple[str, ...] = ONE_RANK
    env_blocked: tuple[str, ...] = ALLOCATION
    env_kept: tuple[str, ...] = ()
    guards: Pairs = (REFUSES_MPICH,)
    signals_owned: tuple[str, ...] = ("SIGINT", "SIGTERM")

    def kept_in(self, folder: PurePath, memory: PurePath) -> Pairs:
        """Session folder, shared memory of the ranks, and permission to run as root.

        The names are those of Open MPI 4 and 5.
        """
        return (
            *((name, "1") for name in _ROOT_MAY),
            ("OMPI_MCA_orte_tmpdir_base", str(folder)),
            ("PRTE_MCA_prte_tmpdir_base", str(folder)),
            ("OMPI_MCA_btl_vader_backing_directory", str(memory)),
            ("OMPI_MCA_btl_sm_backing_directory", str(memory)),
            ("UCX_POSIX_DIR", str(memory)),
        )

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        """`plm isolated`: without it mpirun fails if ssh is missing, though it does not use ssh."""
        return (
            self.mpirun,
            *("--mca", "plm", "isolated") * (len(self.hosts) <= 1),
            *("-n", str(launch.ranks)),
            *self._placement(launch.needs.cores, launch.ranks),
            *argv,
        )

    def _placement(self, cores: int, ranks: int) -> Argv:
        each = -(-ranks // max(1, len(self.hosts)))
        hosts = ("--host", ",".join(f"{host}:{each * cores}" for host in self.hosts))
        where = hosts * bool(self.hosts)
        if self.oversubscribe:
            return (*where, "--oversubscribe", "--bind-to", "none")
        by = f"ppr:{each}:node" if self.hosts else "slot"
        return (*where, "--map-by", f"{by}:PE={cores}", "--bind-to", "core")
