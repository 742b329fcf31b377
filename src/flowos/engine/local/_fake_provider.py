"""A pool whose nodes this machine stands in for, with answers from a script: for tests.

See `model/_fake_script.py` for the script. A request for more nodes than are free waits until
others are freed.
"""

import threading
from collections.abc import Collection

from flowos._dataclasses import replace
from flowos.drivers._slurm_values import read_gres
from flowos.engine._leases import Leases
from flowos.engine._ledger import Resources
from flowos.engine._node import Node
from flowos.engine._provider import NEVER, CancelToken, Held, HoldEvent, OnHoldEvent, ignore
from flowos.engine.local._here import Here
from flowos.engine.local._local_provider import refuse_lacking
from flowos.model import (
    Ask,
    Counts,
    FakeStep,
    Lost,
    NodeInfo,
    Pool,
    SliceRefused,
    counted,
    read_script,
)


class FakeNode(Here):
    """A node that this machine stands in for, with a ledger of its own."""

    def __init__(self, name: str, cores: int | None, devices: Counts = ()) -> None:
        super().__init__(name)
        self._cores = cores
        self._devices = tuple((name, tuple(range(count))) for name, count in devices)

    def resources(self) -> Resources:
        has = replace(super().resources(), devices=self._devices)
        return has if self._cores is None else replace(has, cpus=tuple(range(self._cores)))


class FakeProvider:
    """See `Provider`."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._script = [read_script(line) for line in pool.script]
        devices = tuple(read_gres(pool.gres).items())
        self._all = tuple(
            FakeNode(f"{pool.name}-{number}", pool.cores, devices)
            for number in range(1, pool.nodes + 1)
        )
        self._lost: set[str] = set()
        self._free: list[Node] = list(self._all)
        self._changed = threading.Condition()
        self._leases = Leases(pool, self._put_back)

    def nodes(self) -> tuple[NodeInfo, ...]:
        with self._changed:
            free = {node.name for node in self._free}
        return tuple(self._info(node, free) for node in self._all)

    def check(self, ask: Ask) -> None:
        refuse_lacking(self.pool, ask, self.nodes())
        with self._changed:
            self._refuse_beyond(ask.nodes)

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore, cancel: CancelToken = NEVER) -> Held:
        self.check(ask)
        with self._changed:
            steps = self._script.pop(0) if self._script else ()
        for step in steps:
            if step.what == "refuse":
                raise SliceRefused(f"pool {self.pool.name}: {step.reason}")
            if step.what == "wait":
                on_event(HoldEvent(what="waiting", reason=step.reason))
                cancel.check(step.seconds)
        held = self._leases.begin(self._taken(ask.nodes, 0, on_event, cancel), ask, on_event)
        for step in steps:
            self._plan(step, held)
        return held

    def resize(
        self, held: Held, nodes: int, cancel: CancelToken = NEVER, on_event: OnHoldEvent = ignore
    ) -> Held:
        now = self._leases.now(held)
        missing = nodes - len(now.nodes)
        if missing > 0:
            more = self._taken(missing, len(now.nodes), on_event, cancel)
            return self._leases.add(now, more)
        if nodes < 1:
            asked = counted(nodes, "node")
            raise SliceRefused(f"slice {held.id}: {asked} asked for; free it instead")
        return self._leases.give_back(now, {node.name for node in now.nodes[nodes:]})

    def give_back(self, held: Held, names: Collection[str]) -> Held:
        return self._leases.give_back(held, names)

    def free(self, held: Held) -> None:
        self._leases.free(held)

    def leave(self, held: Held) -> None:
        self.free(held)

    def attach(self, id: str, on_event: OnHoldEvent = ignore) -> Held | Lost:  # noqa: ARG002
        return self._leases.find(id)

    def _info(self, node: FakeNode, free: Collection[str]) -> NodeInfo:
        has = node.resources()
        held = "free" if node.name in free else "held"
        return NodeInfo(
            name=node.name,
            cores=len(has.cpus),
            memory_bytes=has.memory_bytes,
            gpus=has.gpus,
            devices=tuple((name, len(numbers)) for name, numbers in has.devices),
            state="lost" if node.name in self._lost else held,
        )

    def _taken(
        self, count: int, have: int, on_event: OnHoldEvent, cancel: CancelToken
    ) -> tuple[Node, ...]:
        """Wait for this many in addition to those that the slice has."""
        with cancel.wakes(self._changed):
            return self._waited(count, have, on_event, cancel)

    def _waited(
        self, count: int, have: int, on_event: OnHoldEvent, cancel: CancelToken
    ) -> tuple[Node, ...]:
        announced = False
        while True:
            with self._changed:
                there = self._refuse_beyond(have + count)
                cancel.check()
                if len(self._free) >= count:
                    taken = tuple(self._free[:count])
                    del self._free[:count]
                    return taken
                free = len(self._free)
                if announced:
                    self._changed.wait()
                    continue
            on_event(HoldEvent(what="waiting", reason=f"{free} of {there} nodes are free"))
            announced = True

    def _refuse_beyond(self, nodes: int) -> int:
        """How many there are. Raises SliceRefused if they are fewer."""
        there = len(self._all) - len(self._lost)
        if nodes > there:
            asked = counted(nodes, "node")
            raise SliceRefused(f"pool {self.pool.name}: {asked} asked for, it has {there}")
        return there

    def _plan(self, step: FakeStep, held: Held) -> None:
        if step.what == "end":
            why = f"after {step.seconds:g} s"
            self._leases.later(held, step.seconds, lambda: self._leases.end(held, why))
        elif step.what == "lose" and step.node <= len(held.nodes):
            name = held.nodes[step.node - 1].name
            self._leases.later(held, step.seconds, lambda: self._lose(held, name))

    def _lose(self, held: Held, name: str) -> None:
        with self._changed:
            self._lost.add(name)
            self._changed.notify_all()  # requests for more than there is now are refused
        self._leases.lose(held, name, "the node does not answer")

    def _put_back(self, nodes: Collection[Node]) -> None:
        with self._changed:
            self._free += [node for node in nodes if node.name not in self._lost]
            self._changed.notify_all()
