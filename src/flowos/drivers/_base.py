"""Protocols of runtimes and launchers: they build command lines and run nothing."""

from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, Protocol

from flowos._dataclasses import dataclass
from flowos.model import Argv, Form, Image, Launch, Pairs

if TYPE_CHECKING:
    from flowos.model import Facts

RunDir = PurePath
"""Folder of one launch, with the same path inside and outside of every environment."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a runtime cannot be used on a node. `code` is for programs, the rest for people."""

    code: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class SetupStep:
    """Command to run on a node before an image can be entered there.

    stays: it runs as long as the image is used (a FUSE server), and ending it undoes it; otherwise
    it runs once to completion.
    """

    launch: Launch
    stays: bool = False


@dataclass(frozen=True, kw_only=True)
class LinkStep:
    """Symbolic link to make before an image can be entered; it goes with its folder."""

    link: PurePath
    target: PurePath


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What callers need to know about a runtime.

    env_blocked: prefixes of variables that its program does not get: they would change it.
    files: files of the node that it shows in place of the image's, which must have one of each.
    makes_targets: it creates mount points over the image, which need not have them.
    binds_read_only: it can bind read-only.
    reads_cdi: it takes a device's CDI name and reads the CDI specs itself.
    own_terminal: it creates a terminal inside, and must be in the foreground to serve it.
    extra_streams: without a terminal, it takes the standard streams as descriptors 3, 4, 5.
    has_helpers: some of its work is done by processes that are not its own children.
    monitor: file in the run folder with the pid of the helper that cleans up.
    program: the name of its program, where it is another one.
    accelerator: of one that boots an image on a machine of its own: kvm or tcg (see `Boot`).
    """

    env_blocked: tuple[str, ...] = ()
    files: tuple[PurePath, ...] = ()
    makes_targets: bool = False
    binds_read_only: bool = True
    reads_cdi: bool = False
    own_terminal: bool = False
    extra_streams: bool = False
    has_helpers: bool = False
    monitor: str = ""
    program: str = ""
    accelerator: str = ""


class Runtime(Protocol):
    """Enters an environment. All methods are pure: they run nothing."""

    @property
    def name(self) -> str: ...
    @property
    def traits(self) -> Traits: ...

    def variants(self, facts: "Facts") -> tuple["Runtime", ...]:
        """Variants of this runtime for the node, the best first; () if its program is missing.

        Each variant is tried by entering a tiny image; the first that works is used.
        """
        ...

    def usable(self, facts: "Facts") -> tuple[Reason, ...]:
        """Reasons against using it here, from missing parts and failed trials; empty if usable."""
        ...

    def forms(self, facts: "Facts") -> tuple[Form, ...]:
        """Forms of image that it enters on this node after `setup`, the fastest first."""
        ...

    def setup(self, image: Image, at: PurePath) -> tuple[SetupStep | LinkStep, ...]:
        """Steps before the image can be entered; `at` is a fresh folder for a mount.

        If there are none, no folder is made, and nothing is torn down.
        """
        ...

    def entered(self, image: Image, at: PurePath) -> Image:
        """Image to pass to `wrap` after `setup` in the same folder."""
        ...

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:
        """Commands to run once the image is no longer used and the steps that stay have ended."""
        ...

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        """Command line that runs `inner` inside. Raises LaunchFailed if it is impossible."""
        ...


REFUSES_OPEN_MPI = ("OMPI_MCA_orte_ess", "the_mpirun_is_of_MPICH_but_this_program_is_of_Open_MPI")
"""Makes a program of Open MPI 4 fail at MPI_Init.

There is no component of this name, and the error message quotes it.
"""

REFUSES_MPICH = (
    "PMI_PORT",
    "the-mpirun-is-of-Open-MPI-but-this-program-is-of-MPICH-or-its-like-here-a-clear-failure:1",
)
"""Makes a program of the MPICH family fail at MPI_Init.

It cannot connect to this host, and the error message quotes the name. No name server is queried:
the name exceeds the 63 characters of a label (RFC 1035).
"""

ONE_RANK = ("PMIX_", "PMI_", "OMPI_COMM_WORLD_", "HYDI_", "MPI_LOCAL", REFUSES_OPEN_MPI[0])
"""Prefixes of the variables that describe one rank to an MPI library."""

ALLOCATION = ("SLURM_", "PBS_", "LSB_")
"""Prefixes of the variables by which an mpirun finds the nodes of an allocation."""


MpiFamily = Literal["openmpi", "mpich"]
"""MPIs whose ranks find each other alike: MVAPICH and Intel MPI belong to MPICH's."""


class Launcher(Protocol):
    """Starts the ranks of a launch.

    family: of the MPI that these ranks are of; None where the launcher does not determine it.

    Prefixes of variables:
    env_forwarded: carry the launcher's data, such as a rank's number; passed on to the command.
    env_overridden: describe a rank of a surrounding MPI run; hidden from launcher and command.
    env_blocked: describe an allocation with other nodes, which the launcher must not use.
    env_kept: names, not prefixes; how it finds its resource manager, whatever is blocked.

    guards: variables of a rank that make a program of another MPI fail. Without them its ranks
    would not see each other: each would be a world of one rank, without any message.

    signals_owned: names of signals on which it ends the ranks itself, in its own time.
    """

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> MpiFamily | None: ...
    @property
    def env_forwarded(self) -> tuple[str, ...]: ...
    @property
    def env_overridden(self) -> tuple[str, ...]: ...
    @property
    def env_blocked(self) -> tuple[str, ...]: ...
    @property
    def env_kept(self) -> tuple[str, ...]: ...
    @property
    def guards(self) -> Pairs: ...
    @property
    def signals_owned(self) -> tuple[str, ...]: ...

    def kept_in(self, folder: PurePath, memory: PurePath) -> Pairs:
        """Variables that make the launcher and the ranks put their files into these folders.

        They would leave files elsewhere if killed. memory: a folder in shared memory.
        """
        ...

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        """Command line that starts `argv` `launch.ranks` times on this node.

        Each rank gets `launch.needs.cores` cores of its own. Raises LaunchFailed if it cannot.
        """
        ...
