"""One machine, as flows and measurements see it: what it has, and how processes start on it.

Nothing that runs a flow asks the operating system itself: it asks its node. `local._here.Here` is
this machine; a node of a cluster has the same methods. What is true of a node (its run folders,
runtimes that were tried, FUSE servers, answers of its MPI) is state of that object alone.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # whoever runs a flow loads this file, and needs few of these
    from typing import Unpack

    from flowos.engine._device_hold import BoardHold, DeviceHold, WantedBoard
    from flowos.engine._ledger import ResourceLedger, Resources
    from flowos.engine._look import Look
    from flowos.engine._ready import Ready
    from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, Stdin
    from flowos.engine.launch._running import RunningProcess
    from flowos.model import Environment, Facts, Launch, Outcome, Pairs, Usage


class Node(Protocol):
    """Methods may be called from any thread.

    ledger: of what all slices of this process have acquired on the node: two never get the same
    core, and a task with `alone`, and a measurement, has the node to itself.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_here(self) -> bool:
        """Whether it is this machine: threads of this process run on it, and it sees its files."""
        ...

    @property
    def our_address(self) -> str:
        """Of this machine, as another node sees it."""
        ...

    @property
    def job(self) -> str:
        """The number of the job that was begun to hold it; "" where there is none."""
        ...

    @property
    def switch(self) -> str:
        """That it is connected to, as its cluster calls it; "" where that is not known."""
        ...

    def steps(self) -> tuple[str, ...]:
        """Of Slurm, JOB.STEP, that launches are which run there, or did when it was lost."""
        ...

    def used(self) -> "Usage | None":
        """What launches have used there; None of this machine, which all slices share."""
        ...

    def why_unreachable(self, ending_seconds: float = 0.0) -> str:
        """Words for a process of it that is gone: why the node may be lost too, or "".

        If it is, the provider says so first. ending_seconds: how long what holds the node may take
        to end.
        """
        ...

    def neighbours(self) -> "tuple[Node, ...]":
        """Other nodes of its slice, on which some ranks of a launch of this one may be."""
        ...

    @property
    def ledger(self) -> "ResourceLedger": ...

    def resources(self) -> "Resources":
        """What it lets us use now: cpuset and cgroup may have changed since the last time."""
        ...

    def architecture(self) -> str:
        """As uname calls it. Raises TaskFailed if the node cannot be asked."""
        ...

    def compile_target(self) -> str:
        """What -march=native depends on there; "" for this machine.

        Raises TaskFailed if the node cannot be asked.
        """
        ...

    def command_file_digests(self, argv: Sequence[str], path: str | None) -> tuple[bytes, ...]:
        """Of the contents of a command's program, found in this PATH there, and of each word that
        is the absolute path of a file there. path: None is no PATH, which is `os.defpath`.

        Raises OSError for one that cannot be read, TaskFailed if the node cannot be asked.
        """
        ...

    def hold_devices(self, needed: Mapping[str, int]) -> "DeviceHold":
        """Have devices for a slice, as many as it needs of each name, that no other program has.

        Those that there are, `resources` says then; what is missing, the hold says why.
        """
        ...

    def hold_boards(self, wanted: "Sequence[WantedBoard]") -> "BoardHold":
        """Have boards for a slice, each loaded with the bitstream of its task.

        A port that is of no board which can be loaded is taken to lead to one that is.
        """
        ...

    def facts(self) -> "Facts":
        """What it has for entering images, and which runtimes were found to work."""
        ...

    def gpu_devices(self) -> tuple[str, ...]:
        """The CDI names of its GPUs; none where no spec lists them."""
        ...

    def ready(self, env: "Environment") -> "Ready":
        """See to it that launches in `env` can start. Raises EnvironmentRefused if they cannot."""
        ...

    def variables(self, env: "Environment", task: "Pairs" = (), *, inherit: bool = True) -> "Pairs":
        """All variables of a launch in `env`; of two of one name the later one counts."""
        ...

    def prepare(self, launch: "Launch", **options: "Unpack[LaunchKeywords]") -> "PreparedLaunch":
        """Check the launch and make its run folder.

        Its `nodes`: this one is the first, all others are neighbours.

        Raises LaunchFailed if it cannot be started so; EnvironmentRefused if the MPI of its ranks'
        launcher does not fit that of the image.
        """
        ...

    def start(
        self, launch: "Launch", *, stdin: "Stdin" = None, **options: "Unpack[LaunchKeywords]"
    ) -> "RunningProcess":
        """Start a launch and return at once. Raises as `prepare` does."""
        ...

    def run(
        self, launch: "Launch", *, stdin: "Stdin" = None, **options: "Unpack[LaunchKeywords]"
    ) -> "Outcome":
        """Start a launch and wait for its end; an interrupt ends it too. Raises as `prepare`."""
        ...

    def check_mpi(
        self, env: "Environment", launcher: str, mpirun: str = "", variables: "Pairs" = ()
    ) -> None:
        """Raises EnvironmentRefused if the MPI of the node does not fit that of the image.

        Raises LaunchFailed if there is no such mpirun, or it is of another MPI than the launcher's
        name says. variables: of the ranks; programs of an MPI are found on their PATH.
        """
        ...

    def folder(self) -> Path:
        """A folder for files of this process that all ranks of its launches see under this name."""
        ...

    def stage_in(self, path: Path, *, everywhere: bool = False) -> Path:
        """Where a file of this machine lies on the node: at its own path, or a copy of it.

        everywhere: on all neighbours, too. Raises TaskFailed if it cannot be copied.
        """
        ...

    def stage_out(self, path: Path) -> Path | None:
        """Where a file of the node lies on this machine: at its own path, to which it is copied
        where this machine does not see it. None if the node has no such file.

        Raises TaskFailed if it cannot be copied.
        """
        ...

    def stage_notes(self) -> tuple[str, ...]:
        """What was copied for it, as a person should know."""
        ...

    def look(self, storage: Path | None = None) -> "Look":
        """Counters of the machine's state. storage: a folder on the disk to be counted."""
        ...
