"""A node of a Slurm job: what is started there is a step of the job."""

from collections.abc import Callable
from typing import Unpack

from flowos._dataclasses import replace
from flowos.drivers import family_of, incompatibility, runtime_named
from flowos.drivers._allocators import KeptNode
from flowos.drivers.allocators.slurm_nodes import SlurmConfig
from flowos.drivers.launchers.srun import Srun, read_types, refusal_of_types, types_words
from flowos.engine.cluster._cluster_node import ClusterNode, JobNodes
from flowos.engine.cluster._held_job import HeldJob
from flowos.engine.cluster._program_mpi import refuse_other_mpi
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, prepare
from flowos.engine.slurm._commands import answer
from flowos.model import CUDA, MPIS, Environment, EnvironmentRefused, Launch, LaunchFailed, Pairs

_MPI_OF: dict[str, str] = {
    "direct": "",
    **{mpi: family for mpi in MPIS if (family := family_of(mpi))},
}
"""Which MPI srun has to speak with ranks that this launcher would start."""
_BARE = runtime_named("bare")


class SlurmNode(ClusterNode):
    """slurmd: gives its name, address and port."""

    def __init__(
        self,
        kept: KeptNode,
        allocation: HeldJob,
        config: SlurmConfig,
        slurmd: Callable[[], tuple[str, str, int]],
        job: JobNodes,
    ) -> None:
        super().__init__(kept, allocation, slurmd, job, ("SLURM_", CUDA))
        self._config = config
        self._types: tuple[str, ...] | None = None

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        uses_mpi = options.get("uses_mpi", True)
        asked = options.get("launcher", "direct") if uses_mpi else "direct"
        self.check_mpi(launch.env, asked, variables=launch.variables)
        in_image = launch.env.image is not None
        if launch.ranks > 1 and not in_image:
            refuse_other_mpi(launch, asked)
        # one rank enters an image by itself, and its runtime may close what PMI is spoken through
        is_rank = launch.ranks > 1 or not in_image
        srun = Srun(
            job=self.allocation.job,
            mpi=_MPI_OF[asked] if is_rank else "",
            nodes=launch.nodes or (self.name,),
            oversubscribe=options.get("oversubscribe", False),
            shares=launch.ranks == 1,
            binds=self._config.binds,
            overlaps=self._config.overlaps,
            in_image=in_image,
            uses_mpi=uses_mpi,
            forwards_gpus=CUDA not in dict(launch.variables),
        )
        runtime = self._environments.entering(launch.env) if in_image else _BARE
        prepared = prepare(launch, runtime, self._session, srun, **options)
        return self._held(prepared) if prepared.joined else prepared

    def _held(self, prepared: PreparedLaunch) -> PreparedLaunch:
        """With a container for its ranks on each of its nodes."""
        launch, environments = prepared.launch, self._environments
        try:
            for name in launch.nodes or (self.name,):
                other = self._nodes.named(name)
                if other is None:
                    raise LaunchFailed(f"node {name} is not of this slice any more")
                env = launch.env
                env = (
                    env
                    if other is self
                    else environments.on_neighbour(env, name, other._environments)
                )
                enter, holders = other._environments.container(env)
                prepared = replace(prepared, holders=(*prepared.holders, *holders))
                with (prepared.folder / "enter").open("a") as lines:
                    lines.write(enter)
        except BaseException:
            prepared.discard()
            raise
        return prepared

    def check_mpi(
        self,
        env: Environment,
        launcher: str,
        mpirun: str = "",  # noqa: ARG002
        variables: Pairs = (),
    ) -> None:
        """As srun speaks with them; their mpirun has no part in it."""
        if launcher not in _MPI_OF:
            raise LaunchFailed(f"srun starts no ranks of {launcher!r}; it knows openmpi and mpich")
        if refusal := launcher != "direct" and self._refusal_of(_MPI_OF[launcher]):
            raise LaunchFailed(refusal)
        if env.image is None or launcher == "direct":
            return
        inside = self._environments.mpis_inside(env, dict(variables).get("PATH", ""))
        family, asked = family_of(launcher), self._environments.asked(env)
        if family and (reason := incompatibility(family, None, inside)):
            source = asked.image.source if asked.image else ""
            raise EnvironmentRefused(f"image {source}: {reason.text}; {reason.remedy}")

    def _refusal_of(self, mpi: str) -> str:
        """Why this MPI starts no ranks here, or "". Raises SliceRefused if there is no Slurm."""
        if self._types is None:
            said = answer(types_words())
            self._types = read_types((said.stdout + said.stderr).decode(errors="replace"))
        return refusal_of_types(mpi, self._types)
