"""A Ray that this process is connected to: its nodes that have cores, and which are gone."""

import socket
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from itertools import zip_longest
from typing import Any

from flowos._dataclasses import dataclass
from flowos.engine._ledger import Resources
from flowos.engine._node import Node
from flowos.model import Needs, SliceRefused, counted
from flowos.plan import Schedule

_ANSWER_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class RaySpot:
    """A node of Ray. name: that of the slice's node which it runs on, else Ray's own.

    raylet: where that listens.
    """

    id: str
    name: str
    cores: int
    gpus: int
    memory_bytes: int
    raylet: tuple[str, int]


Key = tuple[RaySpot, tuple[tuple[str, str], ...]]
"""Actors are alike that are on one node and have the same variables."""


class RayCluster:
    """ray: the module, connected. nodes: of the slice, by the folders of their raylets.

    ended: folders of raylets that are known to have ended: Ray itself takes 15 s to know. on_node:
    the only node is one of the slice, which runs commands. Raises SliceRefused if there are no
    cores.
    """

    def __init__(
        self,
        ray: Any,
        nodes: Mapping[str, Node],
        ended: Callable[[], Collection[str]],
        *,
        on_node: bool,
    ) -> None:
        self.ray = ray
        names = self._names = {folder: node.name for folder, node in nodes.items()}
        self.nodes, self._ended = tuple(nodes.values()), ended
        self.on_node = on_node
        self.spots = tuple(_spot(row, names) for row in _working(ray))
        if not self.spots:
            raise SliceRefused("slice: workers='ray': no node of this Ray has cores for tasks")
        self._lock = threading.Lock()
        self._closed = False
        self._lost: set[str] = set()
        self._idle: dict[Key, list[tuple[Any, object]]] = {}
        self._watchers: weakref.WeakSet[Callable[[str], None]] = weakref.WeakSet()

    @property
    def resources(self) -> Resources:
        """Of all nodes together."""
        return Resources(
            tuple(range(sum(spot.cores for spot in self.spots))),
            sum(spot.memory_bytes for spot in self.spots),
            (("gpu", tuple(range(sum(spot.gpus for spot in self.spots)))),),
        )

    def refuse_unmet(self, schedule: Schedule) -> None:
        """Raises SliceRefused for what no node has, and a command that would run on none."""
        for stage in schedule.all_stages:
            label, needs = stage.steps[0].label, stage.needs
            if not (stage.in_python or stage.flows or self.on_node):
                raise SliceRefused(
                    f"slice: workers='ray': command {label!r} would run on this machine, not on a "
                    "node of Ray: give it a slice of its own"
                )
            if stage.in_python and not self.has(needs):
                raise SliceRefused(
                    f"slice: task {label!r} needs {counted(needs.cores, 'core')}, "
                    f"{counted(needs.gpus, 'GPU')} and {counted(needs.memory_bytes, 'byte')} of "
                    "one node, and no node of this Ray has them"
                )

    def has(self, needs: Needs) -> bool:
        """Whether one of its nodes does."""
        return any(_has(spot, needs) for spot in self.spots)

    def places(self) -> list[RaySpot]:
        """One for each core, from node to node by turns."""
        by_node = ([spot] * spot.cores for spot in self.spots)
        return [spot for turn in zip_longest(*by_node) for spot in turn if spot is not None]

    def spot_for(self, requested: RaySpot) -> RaySpot | None:
        """This one, or another one where it is gone; None if all are."""
        alive = self._alive()
        if requested in alive:
            return requested
        return alive[self.spots.index(requested) % len(alive)] if alive else None

    def spot_of(self, id_: str, else_: RaySpot) -> RaySpot:
        """Ray's node of this id; one that came later counts as another."""
        return next((spot for spot in self.spots if spot.id == id_), else_)

    def is_gone(self, name: str) -> bool:
        """Whether the node of this name was there and is not now.

        Actors of a raylet that ended are gone before Ray knows that it did.
        """
        if all(spot.name != name for spot in self.spots):
            return False
        alive = [spot for spot in self._alive() if spot.name == name]
        if any(_listens(spot.raylet) for spot in alive):
            return False
        if alive:
            self.lose(name)
        return True

    @property
    def is_there(self) -> bool:
        """Whether any of it is left."""
        return bool(self._alive())

    def lose(self, name: str) -> None:
        """The slice's node is lost: what runs there ends at once, and nothing begins there."""
        with self._lock:
            self._lost.add(name)
            for key in [key for key in self._idle if key[0].name == name]:
                del self._idle[key]
            watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher(name)

    def take(self, key: Key, program: object) -> tuple[Any, object] | None:
        """An actor that is idle, and what it runs: if there is one, this program."""
        with self._lock:
            idle = self._idle.get(key) or []
            which = (i for i, (_, runs) in enumerate(idle) if runs is program)
            return idle.pop(next(which, -1)) if idle else None

    def put(self, key: Key, actor: Any, program: object) -> None:
        """It is idle now, for all flows of the slice."""
        with self._lock:
            if not self._closed:
                self._idle.setdefault(key, []).append((actor, program))
                return
        self.kill(actor)

    def kill(self, actor: Any) -> None:
        if self.ray.is_initialized():
            self.ray.kill(actor)

    def close(self) -> None:
        """End all actors that are idle."""
        with self._lock:
            self._closed = True
            idle = [actor for actors in self._idle.values() for actor, _ in actors]
            self._idle.clear()
        for actor in idle:
            self.kill(actor)

    def watch(self, lost: Callable[[str], None]) -> None:
        """It is called with the name of each node that is lost, for as long as it exists."""
        with self._lock:
            self._watchers.add(lost)

    def _alive(self) -> list[RaySpot]:
        ids = {row["NodeID"] for row in _working(self.ray)}
        gone = self._lost | {self._names[folder] for folder in self._ended()}
        return [spot for spot in self.spots if spot.id in ids and spot.name not in gone]


def _working(ray: Any) -> list[dict[str, Any]]:
    return [row for row in ray.nodes() if row["Alive"] and row["Resources"].get("CPU")]


def _listens(address: tuple[str, int]) -> bool:
    """The kernel answers for a raylet that is busy."""
    try:
        socket.create_connection(address, _ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _spot(row: dict[str, Any], names: Mapping[str, str]) -> RaySpot:
    path, has = row.get("RayletSocketName", ""), row["Resources"]
    ours = (name for folder, name in names.items() if folder in path)
    return RaySpot(
        id=row["NodeID"],
        name=next(ours, row.get("NodeName", row["NodeID"])),
        cores=int(has["CPU"]),
        gpus=int(has.get("GPU", 0)),
        memory_bytes=int(has.get("memory", 0)),
        raylet=(row["NodeManagerAddress"], row["NodeManagerPort"]),
    )


def _has(spot: RaySpot, needs: Needs) -> bool:
    return (
        spot.cores >= needs.cores
        and spot.gpus >= needs.gpus
        and spot.memory_bytes >= needs.memory_bytes
    )
