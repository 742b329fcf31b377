"""What a runtime and a launcher are: they build command lines, and run nothing."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from flowos.model import Argv, Facts, Image, Launch

RunDir = PurePath
"""The folder of one launch, with the same path inside and outside of every environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a runtime cannot be used on a node. `code` is for programs, the rest for people."""

    code: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Ranks of one node that must share what MPI needs shared (memory, namespaces)."""

    name: str
    ranks: int


class Runtime(Protocol):
    """Enters an environment."""

    @property
    def name(self) -> str: ...

    def usable(self, facts: Facts) -> tuple[Reason, ...]:
        """Why not here; empty means usable."""
        ...

    def setup(self, image: Image, at: PurePath) -> tuple[Launch, ...]:
        """What must run once on a node before an image can be entered there (a mount)."""
        ...

    def wrap(self, inner: Argv, launch: Launch, at: RunDir, gang: Gang | None) -> Argv:
        """The command line that runs `inner` inside; LaunchFailed if it cannot do what is asked."""
        ...


ONE_RANK = ("PMIX_", "PMI_", "OMPI_COMM_WORLD_", "HYDI_", "MPI_LOCAL")
"""Prefixes of the variables that describe one rank to an MPI library."""

ALLOCATION = ("SLURM_", "PBS_", "LSB_")
"""Prefixes of the variables by which an mpirun finds the nodes of an allocation."""


class Launcher(Protocol):
    """Starts the ranks of a launch.

    All three are prefixes of variables.
    passes: by these it tells a rank who it is; they reach the command beside those of the launch.
    replaces: these describe a rank of a gang around us: neither it nor the command may see them.
    hides: these it must not see, as they describe an allocation whose other nodes are not meant.
    """

    @property
    def name(self) -> str: ...
    @property
    def passes(self) -> tuple[str, ...]: ...
    @property
    def replaces(self) -> tuple[str, ...]: ...
    @property
    def hides(self) -> tuple[str, ...]: ...

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        """The command line that starts `launch.ranks` times `argv` on this node.

        A rank gets `launch.needs.cores` cores of its own. LaunchFailed if it cannot.
        """
        ...
