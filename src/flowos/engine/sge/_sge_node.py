"""A node of a Grid Engine job: what is started there is a child of its keeper."""

from typing import TypeGuard, Unpack

from flowos._dataclasses import replace
from flowos.drivers import Launcher, launcher_named, runtime_named
from flowos.drivers._allocators import KeptNode
from flowos.drivers.launchers.direct import Direct
from flowos.drivers.launchers.mpich import Hydra
from flowos.drivers.launchers.openmpi import OpenMpi
from flowos.engine.cluster._cluster_node import ClusterNode, JobNodes
from flowos.engine.cluster._program_mpi import refuse_other_mpi
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, prepare
from flowos.engine.sge._allocation import SgeAllocation
from flowos.model import MPIS, Environment, Launch, LaunchFailed, Pairs

_BARE = runtime_named("bare")
_OF_JOB = ("SGE_", "JOB_ID=", "JOB_NAME=", "NSLOTS=", "NHOSTS=", "PE_HOSTFILE=", "QUEUE=")
"""Beginnings of the variables that a task of the job has of it."""


def _knows_qrsh(driver: Launcher) -> TypeGuard[OpenMpi | Hydra]:
    """Does it start ranks on the nodes of the job, and say of which MPI they have to be?"""
    return isinstance(driver, OpenMpi | Hydra) and driver.family is not None


_MPIS = tuple(each for each in MPIS if _knows_qrsh(launcher_named(each)))


class SgeNode(ClusterNode):
    """execd: its name there, and its port."""

    def __init__(
        self, kept: KeptNode, allocation: SgeAllocation, execd_port: int, job: JobNodes
    ) -> None:
        starter = allocation.commands(kept.name)
        execd = "execd", kept.name, execd_port
        self._first = allocation.first
        super().__init__(kept, allocation, lambda: execd, job, ("SGE_",), starter)

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        env, driver = launch.env, Direct(env_forwarded=_OF_JOB)
        if launch.ranks > 1:
            return self._ranks(launch, **options)
        runtime = _BARE if env.image is None else self._environments.entering(env)
        return prepare(launch, runtime, self._session, driver, **options)

    def _ranks(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        """Those on several nodes mpirun starts by qrsh from the job's first one, where alone it
        finds which nodes these are."""
        asked = options.get("launcher", "direct")
        self.check_mpi(launch.env, asked)
        refuse_other_mpi(launch, asked)
        hosts = launch.nodes or (self.name,)
        at = self if len(hosts) == 1 else self._nodes.named(self._first)
        if not isinstance(at, SgeNode):
            raise LaunchFailed(f"{launch.argv[0]}: the first node of the job is lost")
        driver = _mpirun_of(
            asked, options.get("mpirun", ""), oversubscribe=options.get("oversubscribe", False)
        )
        of_job = (*driver.env_forwarded, *_OF_JOB)
        driver = replace(driver, hosts=hosts, env_forwarded=of_job)
        return prepare(launch, _BARE, at._session, driver, **options)

    def check_mpi(
        self,
        env: Environment,
        launcher: str,
        mpirun: str = "",  # noqa: ARG002
        variables: Pairs = (),  # noqa: ARG002
    ) -> None:
        if launcher == "direct":
            return
        _mpirun_of(launcher)
        if env.image is not None:
            raise LaunchFailed(
                f"ranks of {launcher} in an image are not started on nodes of Grid Engine; use "
                "env='bare', or a pool of kind slurm or local"
            )


def _mpirun_of(launcher: str, mpirun: str = "", *, oversubscribe: bool = False) -> OpenMpi | Hydra:
    """Raises LaunchFailed for a launcher that Grid Engine starts no ranks of."""
    driver = launcher_named(launcher, mpirun, oversubscribe=oversubscribe)
    if not _knows_qrsh(driver):
        raise LaunchFailed(
            f"Grid Engine starts no ranks of {launcher!r}; it knows {', '.join(_MPIS)}"
        )
    return driver
