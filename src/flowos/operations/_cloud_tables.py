"""Which table of flowos.toml has a node of Slurm."""

from collections.abc import Callable, Collection, Iterable

from flowos._dataclasses import dataclass
from flowos.drivers.allocators.slurm_power import read_node_names
from flowos.model import Cloud, SettingsError, SliceRefused, merged, read_layers
from flowos.operations.settings_file import settings_layers, settings_names


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
    retry_seconds: float = Cloud.USUAL_RETRY_SECONDS


def cloud_tables() -> tuple[Cloud, ...]:
    """Raises SettingsError if there is none, or one's nodes are no list, or two share a node.

    What pools cost is not looked up: a mistake there keeps no machine running.
    """
    clouds = read_layers(settings_layers()).cloud
    if not clouds:
        raise SettingsError(f"{_file()}: it has no table [cloud.NAME]; see docs/cloud.md")
    owners: dict[str, str] = {}
    for cloud in clouds:
        for node in _names(cloud):
            owner = owners.setdefault(node, cloud.name)
            if owner != cloud.name:
                raise _wrong(cloud, f"{node} is in cloud.{owner} too; leave it in one of them")
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
    names = _names(cloud)
    of_all = len(clouds) == 1 and not names
    return lambda node: (of_all or node in names) and (only is None or node in only)


def stray_nodes(
    clouds: tuple[Cloud, ...], only: Collection[str] | None = None
) -> Callable[[str], bool]:
    """Whether no table has a node any more: its machines are left in each cloud."""
    tables = [cloud_nodes(cloud, clouds) for cloud in clouds]
    return lambda node: not any(has(node) for has in tables) and (only is None or node in only)


def _names(cloud: Cloud) -> frozenset[str]:
    try:
        return frozenset(read_node_names(cloud.nodes))
    except SliceRefused as error:
        raise _wrong(cloud, str(error).removeprefix("Slurm names nodes ")) from None


def _wrong(cloud: Cloud, what: str) -> SettingsError:
    return merged(settings_layers()).mistake(("cloud", cloud.name, "nodes"), what)


def _file() -> str:
    return settings_names() or "no flowos.toml"
