"""What a runtime and a launcher are: they build command lines, and run nothing."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from flowos.model import Argv, Form, Image, Launch, Pairs

if TYPE_CHECKING:
    from flowos.model import Facts

RunDir = PurePath
"""The folder of one launch, with the same path inside and outside of every environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a runtime cannot be used on a node. `code` is for programs, the rest for people."""

    code: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """What must run on a node before an image can be entered there.

    stays: it runs as long as the image is used (a FUSE server), and ending it undoes it; else it is
    run to its end once.
    """

    launch: Launch
    stays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What callers need to know of a runtime.

    env_blocked: prefixes of variables that its program does not see: they would change it.
    files: of the node, that it shows in their place; the image must have one of each name.
    makes_targets: it makes the places of binds over the image, which need not have them.
    binds_read_only: if it is asked to.
    reads_cdi: it is given a device's name and looks into CDI specs itself.
    own_terminal: it makes a terminal inside, and must be in the foreground to serve it.
    streams_beside: but for a terminal, the standard streams come in as descriptors 3, 4 and 5.
    has_helpers: part of its work is done by processes that are no children of its own.
    monitor: a file that it leaves in the run folder: the number of the helper that tidies up.
    """

    env_blocked: tuple[str, ...] = ()
    files: tuple[PurePath, ...] = ()
    makes_targets: bool = False
    binds_read_only: bool = True
    reads_cdi: bool = False
    own_terminal: bool = False
    streams_beside: bool = False
    has_helpers: bool = False
    monitor: str = ""


class Runtime(Protocol):
    """Enters an environment. Every answer is computed from what is given; nothing is run."""

    @property
    def name(self) -> str: ...
    @property
    def traits(self) -> Traits: ...

    def ways(self, facts: "Facts") -> tuple["Runtime", ...]:
        """This runtime adapted to the node, the best way first; none where its program is missing.

        Each way is tried by entering a tiny image; the first that works is the one used.
        """
        ...

    def usable(self, facts: "Facts") -> tuple[Reason, ...]:
        """Why not here, from what is missing and what trying it said; empty means usable."""
        ...

    def forms(self, facts: "Facts") -> tuple[Form, ...]:
        """The forms of image that it enters on this node, after `setup`; the fastest first."""
        ...

    def setup(self, image: Image, at: PurePath) -> tuple[SetupStep, ...]:
        """What must run before the image can be entered; `at` is a fresh folder for a mount."""
        ...

    def entered(self, image: Image, at: PurePath) -> Image:
        """What `wrap` is to be given for this image after `setup` there."""
        ...

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:
        """What must run when the image is used no more, after the steps that stay were ended."""
        ...

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        """The command line that runs `inner` inside; LaunchFailed if it cannot do what is asked."""
        ...


REFUSES_OPEN_MPI = ("OMPI_MCA_orte_ess", "the_starter_is_of_MPICH_but_this_program_is_of_Open_MPI")
"""A program of Open MPI 4 fails at MPI_Init: there is no such component, and it says its name."""

REFUSES_MPICH = (
    "PMI_PORT",
    "the-starter-is-of-Open-MPI-but-this-program-is-of-MPICH-or-its-like-here-a-clear-failure:1",
)
"""A program of the MPICH family fails at MPI_Init: it cannot connect to that host, and says so.

No name server is asked: it is longer than the 63 characters that a label may have (RFC 1035).
"""

ONE_RANK = ("PMIX_", "PMI_", "OMPI_COMM_WORLD_", "HYDI_", "MPI_LOCAL", REFUSES_OPEN_MPI[0])
"""Prefixes of the variables that describe one rank to an MPI library."""

ALLOCATION = ("SLURM_", "PBS_", "LSB_")
"""Prefixes of the variables by which an mpirun finds the nodes of an allocation."""


class Launcher(Protocol):
    """Starts the ranks of a launch.

    Prefixes of variables:
    env_forwarded: by these it tells a rank its number; the command gets them with its own.
    env_overridden: these describe a rank of an MPI run around us; it and the command get neither.
    env_blocked: these describe an allocation with other nodes, which it is not to use.

    guards: variables of a rank. A program of another MPI would not see the other ranks: as many
    worlds of one rank each, without a word. By these it fails instead.

    signals_owned: names of signals on which it ends the ranks by itself, in its own time.
    """

    @property
    def name(self) -> str: ...
    @property
    def env_forwarded(self) -> tuple[str, ...]: ...
    @property
    def env_overridden(self) -> tuple[str, ...]: ...
    @property
    def env_blocked(self) -> tuple[str, ...]: ...
    @property
    def guards(self) -> Pairs: ...
    @property
    def signals_owned(self) -> tuple[str, ...]: ...

    def kept_in(self, folder: PurePath, memory: PurePath) -> Pairs:
        """Variables by which it and the ranks keep their files in these folders.

        They would leave them behind where they are killed. memory: lies in shared memory.
        """
        ...

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        """The command line that starts `launch.ranks` times `argv` on this node.

        A rank gets `launch.needs.cores` cores of its own. LaunchFailed if it cannot.
        """
        ...
