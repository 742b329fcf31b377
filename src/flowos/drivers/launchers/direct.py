"""Starts one process directly."""

from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.drivers._base import ONE_RANK, MpiFamily
from flowos.model import Argv, Launch, LaunchFailed, Pairs


@dataclass(frozen=True)
class Direct:
    name: str = "direct"
    family: MpiFamily | None = None
    env_forwarded: tuple[str, ...] = ()
    env_overridden: tuple[str, ...] = ()
    env_blocked: tuple[str, ...] = (*ONE_RANK, "SLURM_PROCID")
    env_kept: tuple[str, ...] = ()
    guards: Pairs = ()
    signals_owned: tuple[str, ...] = ()

    def kept_in(self, folder: PurePath, memory: PurePath) -> Pairs:  # noqa: ARG002
        return ()

    def wrap(self, argv: Argv, launch: Launch) -> Argv:
        if launch.ranks != 1:
            raise LaunchFailed(
                f"{launch.argv[0]}: {launch.ranks} ranks need an MPI launcher, not 'direct'"
            )
        return argv
