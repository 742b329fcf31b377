"""Which nodes a flow needs, which nodes are near to each other, and where a run goes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.model import Flow, Needs, Task

if TYPE_CHECKING:
    from flowos.model import Topology


def devices_needed(flow: Flow, choice: int = 0) -> dict[str, int]:
    """The most that one of its tasks needs of each device.

    choice: of what would do, the first one is 0; the last one of tasks that have fewer.
    """
    found: dict[str, int] = {}
    for needs in _needs_within(flow, choice):
        for name, count in needs.device_counts:
            found[name] = max(count, found.get(name, 0))
    return found


def cores_needed(flow: Flow, choice: int = 0) -> int:
    """The most that one of its tasks, or a rank of one, needs. choice: see `devices_needed`."""
    return max((needs.cores for needs in _needs_within(flow, choice)), default=1)


def gpus_needed(flow: Flow, choice: int = 0) -> int:
    """The most that one of its tasks needs. choice: see `devices_needed`."""
    return max((needs.gpus for needs in _needs_within(flow, choice)), default=0)


def memory_needed(flow: Flow, choice: int = 0) -> int:
    """The most bytes that one of its tasks needs. choice: see `devices_needed`."""
    return max((needs.memory_bytes for needs in _needs_within(flow, choice)), default=0)


def _needs_within(flow: Flow, choice: int) -> Iterator[Needs]:
    for task in tasks_within(flow):
        yield task.needs.choices[: choice + 1][-1]


def tasks_within(flow: Flow) -> Iterator[Task]:
    """Its tasks, and those of flows in it."""
    for call in flow.calls:
        body = call.task.body
        yield call.task
        for inner in (body,) if isinstance(body, Flow) else getattr(body, "flows", ()):
            yield from tasks_within(inner)


def lacking_time(needs: Needs, left_seconds: float) -> str:
    """Why a task does not begin on nodes that are held for so long yet; "" if it does.

    One that asks for no time begins: that the nodes are given back, their slice says.
    """
    if needs.remaining_seconds <= max(0.0, left_seconds):
        return ""
    left = max(0.0, math.floor(10 * left_seconds) / 10)
    needed = f"{needs.remaining_seconds:g} s until its nodes are given back"
    return f"{needed}, {left:g} s are left: hold them for more seconds"


def nodes_by_switch(
    nodes: Sequence[str], count: int, topology: "Topology", switches: Mapping[str, str]
) -> tuple[str, ...]:
    """So many of these nodes: on one switch, on few (pack), or on many (spread).

    They are as many at least. switches: of the nodes; one that is not known counts as another.
    () if no switch has so many.
    """
    groups: dict[str, list[str]] = {}
    for node in nodes:
        groups.setdefault(switches.get(node, f"of {node}"), []).append(node)
    largest = sorted(groups.values(), key=len, reverse=True)
    if topology == "switch":
        fitting = [group for group in largest if len(group) >= count]
        return tuple(fitting[-1][:count]) if fitting else ()
    if topology == "pack":
        return tuple(_packed(largest, count))
    if topology == "spread":
        turns = sorted((turn, i) for i, group in enumerate(largest) for turn in range(len(group)))
        return tuple(largest[i][turn] for turn, i in turns[:count])
    return tuple(nodes[:count])


def _packed(largest: Sequence[list[str]], count: int) -> list[str]:
    """From the smallest group that has them all, else the largest one and those after it."""
    fitting = [group for group in largest if len(group) >= count]
    if fitting or not largest:
        return fitting[-1][:count] if fitting else []
    return [*largest[0], *_packed(largest[1:], count - len(largest[0]))]


def topology_notes(topology: "Topology", nodes: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """What came of what was asked for. nodes: with their switches, "" of one that is not known."""
    if not topology:
        return ()
    groups: dict[str, list[str]] = {}
    for node, switch in nodes:
        groups.setdefault(switch or "no known switch", []).append(node)
    words = [f"{', '.join(names)} on {switch}" for switch, names in groups.items()]
    return (f"topology={topology!r}: {'; '.join(words)}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePicture:
    """A node, as a run would find it now.

    busy: runs that are there; places: how many there may be at once. image_seconds: to open the
    image; 0 where it is open. device_seconds: to configure devices; 0 where they are.
    """

    busy: int
    places: int
    image_seconds: float = 0.0
    device_seconds: float = 0.0


def choose_node(nodes: Sequence[NodePicture], run_seconds: float | None) -> tuple[int, str]:
    """Which node the next run goes to: its place among them; why, if it is not the least busy.

    run_seconds: that a run takes; None if that is not known. Another node than the least busy is
    worth it if what is ready there saves more than all its runs could cost this one, one after the
    other: so it is never much worse, whatever they share.
    """
    least = min(range(len(nodes)), key=lambda i: nodes[i].busy)
    able = [i for i, node in enumerate(nodes) if node.busy < node.places]
    best = min((least, *able), key=lambda i: _cost(nodes[i], run_seconds))
    if _cost(nodes[least], run_seconds) <= _cost(nodes[best], run_seconds):
        return least, ""
    if nodes[best].image_seconds < nodes[least].image_seconds:
        return best, "the image is open there"
    if not nodes[best].device_seconds:
        return best, "its devices are configured for it"
    return best, "its devices are configured for no other flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPlaces:
    """A node that takes part in a map. warm: those of its places at which a worker runs."""

    places: int
    warm: int = 0


def map_share(node: MapPlaces, nodes: Sequence[MapPlaces], items: int) -> int:
    """How many of the items without a result this one of the nodes may have.

    Warm places are filled first, then the others; what is more is dealt by places. What the shares
    of all nodes come to is never less than there is.
    """
    places, warm = sum(each.places for each in nodes), sum(each.warm for each in nodes)
    if not items:
        return 0
    if items <= warm:
        return -(-items * node.warm // warm)
    if items <= places:
        return node.warm - (-(items - warm) * (node.places - node.warm) // (places - warm))
    return -(-items * node.places // places)


def map_first(nodes: Mapping[str, MapPlaces]) -> str:
    """Which nodes take the first items of a map, and why; "" if there is no difference."""
    first = [name for name, node in nodes.items() if node.warm]
    if len(first) in (0, len(nodes)):
        return ""
    return f"{', '.join(first)} first: its workers run there"


def _cost(node: NodePicture, run_seconds: float | None) -> float:
    """Seconds, at most."""
    others = node.busy * (math.inf if run_seconds is None else run_seconds) if node.busy else 0.0
    return node.image_seconds + node.device_seconds + others
