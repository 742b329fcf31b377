"""Which table of flowos.toml has a node of Slurm, and what is said while machines are changed."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from flowos.drivers.allocators.slurm_power import read_node_names
from flowos.engine import Machines, PowerSaving, now, utc_of
from flowos.model import Cloud, CloudAction, CloudRefusal, SettingsError, Vm
from flowos.operations.settings import load_settings, settings_file

RETRY_SECONDS = 300.0
"""Where no table says it."""

OnAction = Callable[[CloudAction], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNodes:
    """Nodes of one table."""

    cloud: Cloud
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedNode:
    """A node that gets no machine."""

    node: str
    why: str
    retry_seconds: float = RETRY_SECONDS


class Acting:
    """Does what was decided and says it; in a dry run it only says it."""

    def __init__(self, on_action: OnAction, *, dry_run: bool) -> None:
        self.slurm, self.dry_run = PowerSaving(), dry_run
        self._on_action = on_action

    def say(self, action: CloudAction) -> None:
        self._on_action(replace(action, at=utc_of(time.time())))

    def end(self, machines: Machines, vm: Vm, why: str) -> CloudRefusal | None:
        since = now()
        refusal = None if self.dry_run else machines.end(vm)
        took = None if self.dry_run else now() - since
        action = CloudAction(what="end", node=vm.node, vm=vm.id, why=why, seconds=took)
        if refusal is not None:
            action = replace(action, what="keep", why=str(refusal))
        self.say(action)
        return refusal

    def give_back(self, node: str, why: str) -> None:
        if not self.dry_run:
            self.slurm.give_back(node)
        self.say(CloudAction(what="back", node=node, why=why))

    def lose(self, node: str) -> None:
        why = "its machine is gone"
        if not self.dry_run:
            self.slurm.lose(node, why)
        self.say(CloudAction(what="back", node=node, why=why))

    def cluster(self, cloud: Cloud) -> str:
        return cloud.cluster or self.slurm.cluster()


def cloud_tables() -> tuple[Cloud, ...]:
    """Raises SettingsError if there is none."""
    clouds = load_settings().cloud
    if not clouds:
        raise SettingsError(f"{_file()}: it has no table [cloud.NAME]; see docs/cloud.md")
    return clouds


def by_table(nodes: Iterable[str]) -> tuple[tuple[CloudNodes, ...], list[RefusedNode]]:
    """Nodes by the table that has them, and those that none has. Raises as `cloud_tables`."""
    clouds = cloud_tables()
    left = list(nodes)
    shares = []
    for cloud in clouds:
        has = cloud_nodes(cloud, clouds)
        shares.append(CloudNodes(cloud=cloud, nodes=tuple(filter(has, left))))
        left = [node for node in left if not has(node)]
    why = f"no [cloud.NAME] of {_file()} has "
    refused = [RefusedNode(node=node, why=why + node) for node in left]
    return tuple(share for share in shares if share.nodes), refused


def cloud_nodes(
    cloud: Cloud, clouds: tuple[Cloud, ...], only: Collection[str] | None = None
) -> Callable[[str], bool]:
    """Whether a node is of a table: the only one may leave out which it has."""
    names = frozenset(read_node_names(cloud.nodes))
    of_all = len(clouds) == 1 and not names
    return lambda node: (of_all or node in names) and (only is None or node in only)


def _file() -> str:
    return str(settings_file() or "no flowos.toml")
