"""The users of a pool, and its storage."""

from dataclasses import dataclass
from pathlib import PurePath


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
class PoolStorage:
    """A folder of a pool, as this machine sees it. free_bytes: that we may write.

    complaint: why its size is not known.
    """

    key: str
    path: PurePath
    total_bytes: int | None = None
    free_bytes: int | None = None
    complaint: str = ""


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one + (other or 0.0)
