"""What the lanes of a slice share: its program, how it is sent, and actors that run it."""

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from flowos._dataclasses import replace
from flowos.engine.flow._bound import is_bound, with_threads
from flowos.engine.flow._inside import Surroundings, TaskFiles
from flowos.engine.flow._kept import kept_slots
from flowos.engine.flow._lanes import Values
from flowos.engine.launch._same_flowos import sizes_here
from flowos.engine.ray._ray_cluster import Key, RayCluster, RaySpot
from flowos.engine.ray._ray_failures import first_line, unsendable
from flowos.engine.ray._ray_values import InRay, Nth, writable
from flowos.engine.ray.ray_worker import RayAnswer, RayWorker
from flowos.engine.workers._functions import dumps, dumps_with_modules
from flowos.engine.workers._worker_failures import input_unsendable
from flowos.model import FlowosError, Needs, Python, SliceFreed, SliceRefused
from flowos.plan import Schedule, Stage

_LOADED = ("engine/launch", "engine/ray", "plan")
"""Folders of FlowOS from which an actor loads something, besides what tasks do."""


class RayShop:
    """Of one slice."""

    def __init__(self, schedule: Schedule, cluster: RayCluster) -> None:
        self.cluster, self.ray = cluster, cluster.ray
        self.closed = False
        self._files = {
            node.name: TaskFiles(schedule, Surroundings(node=node)) for node in cluster.nodes
        }
        self.kept = self._kept(schedule)
        self._process = os.getpid()
        self._python = [stage for stage in schedule.all_stages if stage.in_python]
        bodies = ((stage.number, stage.steps[0].task.body) for stage in self._python)
        self.limits = {
            number: body.limit_seconds
            for number, body in bodies
            if isinstance(body, Python) and body.limit_seconds is not None
        }
        bound = (stage.needs.cores for stage in self._python if is_bound(stage.needs))
        threads = max(bound, default=None)
        self._variables = () if threads is None else with_threads((), threads)
        self._kind = self.ray.remote(RayWorker)
        self._path = [str(Path(folder).absolute()) for folder in sys.path]
        self._by_value = threading.Lock()
        self._program = self._sent(dumps)

    def programs(self) -> Iterator[Any]:
        """Ways to send the program: by names, then with the code of its modules."""
        first = self._program
        yield first
        with self._by_value:
            if self._program is first:
                bodies = (step.task.body for stage in self._python for step in stage.steps)
                functions = [body.fun for body in bodies if isinstance(body, Python)]
                self._program = self._sent(partial(dumps_with_modules, functions=functions))
        yield self._program

    def _kept(self, schedule: Schedule) -> dict[int, frozenset[int]]:
        """What stays in Ray: no files, which other nodes may not see."""
        kept = kept_slots(schedule)
        for files in self._files.values():
            kept = {
                stage.number: kept[stage.number] - files.gives(stage)
                for stage in schedule.all_stages
                if stage.in_python
            }
        return kept

    def taken(self, spot: RaySpot, stage: Stage, row: Values) -> Values:
        """What it takes there, files under their names on that node. Raises as `TaskFiles`.

        Files that are written into the flow are sent each time, with all its constants.
        """
        files = self._files.get(spot.name)
        if files is None:
            return row
        there = files.as_inside(stage, row)
        if not files.may_move(stage):
            return there
        return [*there, *files.constants_inside(stage, stage.constants)]

    def given(self, spot: RaySpot, stage: Stage, row: list[Any]) -> list[Any]:
        """What it gave there, with files of this machine. Raises as `TaskFiles`."""
        files = self._files.get(spot.name)
        return row if files is None else files.as_outside(stage, row)

    def _takes_all(self, stage: Stage) -> Stage:
        """The stage as it is sent; see `taken`."""
        if not any(files.may_move(stage) for files in self._files.values()):
            return stage
        slots = (*stage.inputs, *(-1 for _ in stage.constants))
        return replace(stage, inputs=slots, constants=())

    def _sent(self, dump: Callable[[object], bytes]) -> Any:
        """A reference to the program."""
        stages = {
            s.number: (self._takes_all(s), frozenset(map(s.outputs.index, self.kept[s.number])))
            for s in self._python
        }
        try:
            return self.ray.put(dump(stages))
        except Exception as error:
            why = first_line(error)
            raise SliceRefused(
                f"slice: workers='ray': a function or constant cannot be sent ({why}); "
                "give the slice workers='thread'"
            ) from error

    def actor(self, spot: RaySpot, needs: Needs, program: Any) -> tuple[Any, object]:
        """One that is idle on this node or a new one, and what it runs.

        It is elsewhere, and new, if its stage takes cores of Ray's.
        """
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}
        if self.takes_cores(needs):
            options |= {"num_cpus": needs.cores, "num_gpus": needs.gpus}
        elif idle := self.cluster.take(self.key(spot), program):
            return idle
        else:
            known = importlib.import_module("ray.util.scheduling_strategies")
            on = known.NodeAffinitySchedulingStrategy(spot.id, soft=False)
            options["scheduling_strategy"] = on
        if self._variables:
            options["runtime_env"] = {"env_vars": dict(self._variables)}
        return self._kind.options(**options).remote(self._path, sizes_here(*_LOADED)), None

    def key(self, spot: RaySpot) -> Key:
        return spot, self._variables

    def takes_cores(self, needs: Needs) -> bool:
        """Whether Ray finds the node: such an actor is ended after its stage."""
        return needs.gpus > 0 or (needs.cores > 1 and len(self.cluster.spots) > 1)

    def refuse_over(self) -> None:
        if os.getpid() != self._process:
            raise SliceFreed(f"this slice belongs to process {self._process}: make another")
        if self.closed:
            raise SliceFreed("the slice was freed: make another with fo.slice(...)")

    def packed(self, values: Sequence[Values]) -> tuple[list[list[Any]], list[Any]]:
        """The rows as they are sent, and references to what of them lies in Ray."""
        lying: list[Any] = []

        def sent(value: object) -> object:
            if type(value) is not InRay:
                return value
            lying.append(value.ref)
            return Nth(len(lying) - 1)

        return [[sent(value) for value in row] for row in values], lying

    def begun(
        self,
        begin: Callable[[Any], list[Any]],
        actor: Any,
        stages: Sequence[Stage],
        values: Sequence[Values],
    ) -> list[Any]:
        """References to what the call will give. Raises ValueRefused for what cannot be sent."""
        try:
            return begin(actor)
        except (FlowosError, self.ray.exceptions.RayError):
            raise
        except Exception as error:
            for stage, row in zip(stages, values, strict=True):
                for register, value in enumerate(row):
                    if type(value) is not InRay and (why := unsendable(value)):
                        raise input_unsendable(stage, register, why) from error
            raise

    def opened(self, stage: Stage, row: list[Any], stays: Iterator[Any]) -> list[Any]:
        """The values of its outputs."""
        kept = self.kept[stage.number]
        return [
            InRay(self.ray, next(stays)) if slot in kept else writable(value)
            for slot, value in zip(stage.outputs, row, strict=True)
        ]

    @staticmethod
    def print(answer: RayAnswer) -> None:
        """What tasks printed there comes out here, before their run ends."""
        for text, stream in zip(answer[-1], (sys.stdout, sys.stderr), strict=True):
            if text:
                stream.write(text)

    @property
    def is_ours(self) -> bool:
        """A forked child leaves its parent's actors alone."""
        return os.getpid() == self._process
