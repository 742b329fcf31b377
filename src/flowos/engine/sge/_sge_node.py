"""A node of a Grid Engine job: what is started there is a child of its keeper."""

from typing import Unpack

from flowos.drivers import runtime_named
from flowos.drivers._allocators import KeptNode
from flowos.drivers.launchers.direct import Direct
from flowos.engine.cluster._cluster_node import ClusterNode, JobNodes
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, prepare
from flowos.engine.sge._allocation import SgeAllocation
from flowos.model import Environment, Launch, LaunchFailed, Pairs

_BARE = runtime_named("bare")
_OF_JOB = ("SGE_", "JOB_ID=", "JOB_NAME=", "NSLOTS=", "NHOSTS=", "PE_HOSTFILE=", "QUEUE=")
"""Beginnings of the variables that a task of the job has of it."""


class SgeNode(ClusterNode):
    """execd: its name there, and its port."""

    def __init__(
        self, kept: KeptNode, allocation: SgeAllocation, execd_port: int, job: JobNodes
    ) -> None:
        starter = allocation.commands(kept.name)
        execd = "execd", kept.name, execd_port
        super().__init__(kept, allocation, lambda: execd, job, ("SGE_",), starter)

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        if launch.ranks > 1:
            _refuse_ranks(launch.argv[0])
        env = launch.env
        runtime = _BARE if env.image is None else self._environments.entering(env)
        return prepare(launch, runtime, self._session, Direct(env_forwarded=_OF_JOB), **options)

    def check_mpi(
        self,
        env: Environment,  # noqa: ARG002
        launcher: str,
        mpirun: str = "",  # noqa: ARG002
        variables: Pairs = (),  # noqa: ARG002
    ) -> None:
        if launcher != "direct":
            _refuse_ranks(launcher)


def _refuse_ranks(what: str) -> None:
    raise LaunchFailed(
        f"{what}: ranks of an MPI program are not started on nodes of Grid Engine; use a pool of "
        "kind slurm or local"
    )
