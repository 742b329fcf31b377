"""A node of a Slurm job: what is started there is a step of the job."""

import socket
import threading
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Unpack

from flowos.drivers import runtime_named
from flowos.drivers.allocators.slurm_nodes import KeptNode, SlurmConfig
from flowos.drivers.launchers.srun import Srun
from flowos.engine._ledger import ResourceLedger, Resources
from flowos.engine._look import Look
from flowos.engine._ready import Ready, bare_ready
from flowos.engine.environments._inside import launch_variables
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, Stdin, prepare
from flowos.engine.launch._running import RunningProcess, give_up_all
from flowos.engine.launch._session import Elsewhere, LaunchSession
from flowos.engine.slurm._allocation import Allocation
from flowos.engine.slurm._shared_folder import made, remove_if_empty
from flowos.model import (
    Environment,
    EnvironmentRefused,
    Facts,
    Launch,
    LaunchFailed,
    Outcome,
    Pairs,
)

_MPI_OF = {
    "direct": "",
    "openmpi": "openmpi",
    "mpich": "mpich",
    "mvapich": "mpich",
    "intel": "mpich",
}
"""Which MPI srun has to speak with ranks that this launcher would start."""
_ANSWER_SECONDS, _TOLD_SECONDS = 1.0, 0.2
_BARE = runtime_named("bare")


class SlurmNode:
    """See `Node`.

    slurmd: its address and port. base: where run folders lie, which the node sees too.
    """

    is_here = False

    def __init__(
        self,
        kept: KeptNode,
        allocation: Allocation,
        config: SlurmConfig,
        slurmd: tuple[str, int],
        base: Path,
    ) -> None:
        self.allocation, self._slurmd = allocation, slurmd
        self._kept, self._config = kept, config
        self._base = base
        self._session = LaunchSession(Elsewhere(base=partial(made, base), cpus=len(kept.cpus)))
        self.ledger = ResourceLedger(self.resources())

    @property
    def name(self) -> str:
        return self._kept.name

    @property
    def our_address(self) -> str:
        return self._kept.our_address

    def why_unreachable(self) -> str:
        """It is lost if its slurmd does not answer: no step starts there any more."""
        try:
            socket.create_connection(self._slurmd, _ANSWER_SECONDS).close()
        except OSError as error:
            why = "it does not answer" if isinstance(error, TimeoutError) else error.strerror
            self._lose(f"no way to its slurmd: {why}")
            return f"; node {self.name} is lost: {why}"
        return ""

    def _lose(self, why: str) -> None:
        """What learns of it may wait for the run that found it out."""
        telling = threading.Thread(target=self.allocation.lose, args=(self.name, why), daemon=True)
        telling.start()
        telling.join(_TOLD_SECONDS)

    def close(self) -> None:
        """It was given back."""
        self._session.folders.remove()
        remove_if_empty(self._base)

    def give_up(self) -> None:
        """It is lost: what was started there is over."""
        give_up_all(self._session.folders)

    def resources(self) -> Resources:
        return Resources(self._kept.cpus, self._kept.memory_bytes, self._kept.gpus)

    def facts(self, *, only: Collection[str] | None = None) -> Facts:  # noqa: ARG002
        raise self._no_images()

    def has(self, path: str) -> bool:
        return self.run(Launch(argv=("test", "-e", path))).ok

    def gpu_devices(self) -> tuple[str, ...]:
        raise self._no_images()

    def ready(self, env: Environment) -> Ready:
        if env.image is not None:
            raise self._no_images()
        return bare_ready(env)

    def variables(self, env: Environment, task: Pairs = (), *, inherit: bool = True) -> Pairs:
        """Ours, but for those of a job around us: the step has its own."""
        found = launch_variables(self._session, env, task, inherit=inherit)
        return tuple((name, value) for name, value in found if name[:6] != "SLURM_")

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        asked = options.get("launcher", "direct")
        if asked not in _MPI_OF:
            raise LaunchFailed(
                f"'{launch.argv[0]}': srun starts no ranks of {asked!r}; it knows openmpi and mpich"
            )
        srun = Srun(
            job=self.allocation.job,
            mpi=_MPI_OF[asked] if launch.ranks > 1 else "",
            nodes=(self.name,),
            oversubscribe=options.get("oversubscribe", False),
            shares=launch.ranks == 1,
            binds=self._config.binds,
        )
        return prepare(launch, _BARE, self._session, srun, **options)

    def start(
        self, launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]
    ) -> RunningProcess:
        return self.prepare(launch, **options).start(stdin=stdin)

    def run(
        self, launch: Launch, *, stdin: Stdin = None, **options: Unpack[LaunchKeywords]
    ) -> Outcome:
        return self.prepare(launch, **options).run(stdin=stdin)

    def check_mpi(
        self,
        env: Environment,
        launcher: str,  # noqa: ARG002
        mpirun: str = "",  # noqa: ARG002
        variables: Pairs = (),  # noqa: ARG002
    ) -> None:
        if env.image is not None:
            raise self._no_images()

    def folder(self) -> Path:
        return self._session.folder()

    def look(self, storage: Path | None = None) -> Look:  # noqa: ARG002
        """The counters of another machine are not read."""
        now = time.monotonic()
        return Look(at=now, ours=0, busy=None, idle=None, steal=None, throttled=None, load=None)

    def _no_images(self) -> EnvironmentRefused:
        return EnvironmentRefused(f"node {self.name}: images are not entered on Slurm's nodes yet")
