"""Which table of flowos.toml has a node of Slurm."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from flowos.drivers.allocators.slurm_power import read_node_names
from flowos.model import Cloud, SettingsError
from flowos.operations.settings_file import load_settings, settings_names

RETRY_SECONDS = 300.0
"""Where no table says it."""


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


def stray_nodes(
    clouds: tuple[Cloud, ...], only: Collection[str] | None = None
) -> Callable[[str], bool]:
    """Whether no table has a node any more: its machines are left in each cloud."""
    tables = [cloud_nodes(cloud, clouds) for cloud in clouds]
    return lambda node: not any(has(node) for has in tables) and (only is None or node in only)


def _file() -> str:
    return settings_names() or "no flowos.toml"
