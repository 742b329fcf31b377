"""Open MPI's mpirun (4.0 and later), all ranks on this node."""

from dataclasses import dataclass

from flowos.drivers._base import ALLOCATION, ONE_RANK
from flowos.model import Argv, Launch


@dataclass(frozen=True, slots=True)
class OpenMpi:
    """mpirun itself refuses more ranks than cores unless `oversubscribe` is asked for."""

    starter: str = "mpirun"
    oversubscribe: bool = False
    name: str = "openmpi"
    passes: tuple[str, ...] = ("OMPI_", "PMIX_", "PRTE_", "HFI_NO_BACKTRACE", "IPATH_NO_BACKTRACE")
    replaces: tuple[str, ...] = ONE_RANK
    hides: tuple[str, ...] = ALLOCATION

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        """`plm isolated`: without it mpirun fails where there is no ssh, though none is used."""
        return (
            self.starter,
            "--allow-run-as-root",
            *("--mca", "plm", "isolated"),
            *("-n", str(launch.ranks)),
            *self._placement(launch.needs.cores),
            *argv,
        )

    def _placement(self, cores: int) -> Argv:
        if self.oversubscribe:
            return ("--oversubscribe", "--bind-to", "none")
        return ("--map-by", f"slot:PE={cores}", "--bind-to", "core")
