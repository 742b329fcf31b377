"""The users of a pool, and its storage."""

from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.model._pool import StorageTier


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUser:
    """A user of the pool's nodes. jobs, nodes, cores: held now; waiting: jobs that wait for some.

    node_seconds, core_seconds, gpu_seconds: used in the last days; None where it is not accounted.
    """

    name: str
    jobs: int = 0
    nodes: int = 0
    cores: int = 0
    waiting: int = 0
    node_seconds: float | None = None
    core_seconds: float | None = None
    gpu_seconds: float | None = None

    def plus(self, other: "PoolUser") -> "PoolUser":
        return PoolUser(
            name=self.name,
            jobs=self.jobs + other.jobs,
            nodes=self.nodes + other.nodes,
            cores=self.cores + other.cores,
            waiting=self.waiting + other.waiting,
            node_seconds=_sum(self.node_seconds, other.node_seconds),
            core_seconds=_sum(self.core_seconds, other.core_seconds),
            gpu_seconds=_sum(self.gpu_seconds, other.gpu_seconds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSpeed:
    """How fast a folder was read and written one after the other, by a stored run.

    host: where it ran; folder: where in the storage. None of what that run did not measure.
    """

    run: str
    host: str
    folder: PurePath
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStorage:
    """A folder of a pool: as promised, as seen, as measured. key: of flowos.toml.

    node: on which it was seen; "" for this machine. free_bytes: that we may write. complaint: why
    its size is not known. speed: of the last run that measured it; None if none did. not_measured:
    why that is not known, if it is not. measure: the command that measures it.
    """

    key: str
    path: PurePath
    promised: StorageTier | None = None
    node: str = ""
    total_bytes: int | None = None
    free_bytes: int | None = None
    complaint: str = ""
    speed: StorageSpeed | None = None
    not_measured: str = ""
    measure: str = ""


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one + (other or 0.0)
