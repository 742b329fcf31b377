"""How a slice runs its flow."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flowos._dataclasses import dataclass
from flowos.engine._hold_end import NO_END, HoldEnd
from flowos.engine._node import Node
from flowos.engine.flow._runs import OnStage
from flowos.engine.flow._usage import OnUsage
from flowos.model import BARE, Environment, Flow, Port
from flowos.plan import Fuse

if TYPE_CHECKING:
    from flowos.engine.flow._progress import ProgressWatch
    from flowos.engine.ray._ray_cluster import RayCluster

Workers = Literal["thread", "process", "inline", "ray"]
Flowing = Flow | Port | Sequence[Port]
"""A flow, or its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceOptions:
    """How a slice runs its flow.

    workers: threads by default; in an image processes, as no thread can enter one. cores: how many
    to hold, by default all that the cpuset and cgroup leave us. folder: where the files that
    commands write are kept; without it they go when the slice is freed. env: made ready on the
    node, and undone when the slice is freed. on_usage: gets what counts the slice's runs. journal:
    a folder in which results are kept by content; log: a file that gets a line for each task that
    ran. Each task is a stage by itself then. progress: watches all runs. ray: of workers="ray".
    hold_end: of the nodes. engines: on which tasks with several bodies may run, or None: on all.
    """

    workers: Workers | None = None
    cores: int | None = None
    folder: Path | None = None
    env: Environment = BARE
    on_stage: OnStage | None = None
    fuse: Fuse | None = None
    on_usage: OnUsage | None = None
    journal: Path | None = None
    log: Path | None = None
    progress: "ProgressWatch | None" = None
    ray: "RayCluster | None" = None
    hold_end: HoldEnd = NO_END
    engines: tuple[str, ...] | None = None

    def places_on(self, node: Node) -> int:
        """How many tasks run there at once."""
        if self.workers == "inline":
            return 1
        return self.cores or len(node.ledger.whole.cpus)
