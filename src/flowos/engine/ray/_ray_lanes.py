"""Lanes that run stages in actors of Ray; values that only stages read stay in Ray.

A lane takes an actor that is idle, whichever flow of the slice it ran before, or makes one, and
another after it was lost. Nothing runs twice by itself: whether a task may is the flow's affair
(`retries=`). What an actor gave stays in the store of its node when the actor is gone; what lay on
a node that is gone is lost.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flowos._collected import when_collected
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.flow._lanes import BATCH_SECONDS, RowTimes, Values
from flowos.engine.launch._same_flowos import unlike_words
from flowos.engine.ray._ray_cluster import RayCluster, RaySpot
from flowos.engine.ray._ray_failures import failure_of, lost_with, raised
from flowos.engine.ray._ray_shop import RayShop
from flowos.engine.ray._ray_values import InRay, writable
from flowos.engine.ray.ray_worker import RayAnswer
from flowos.engine.workers._worker_failures import over_limit
from flowos.model import Cancelled, DeviceNumbers, FlowosError, LaunchFailed, WorkerLost
from flowos.plan import Schedule, Stage

_MAX_STAGES = 64
_STOPPED = "the worker of Ray was stopped"


class RayLanes:
    """As many lanes as stop_flags, over the nodes of Ray by turns."""

    max_batch = _MAX_STAGES
    ready = 0

    def __init__(
        self, schedule: Schedule, stop_flags: Sequence[StopFlag], cluster: RayCluster
    ) -> None:
        shop, places = RayShop(schedule, cluster), cluster.places()
        self.lanes = tuple(
            RayLane(shop, stop_flag, places[i % len(places)])
            for i, stop_flag in enumerate(stop_flags)
        )
        self._lose = partial(_lose, self.lanes)
        cluster.watch(self._lose)
        self._end = partial(_close, shop, self.lanes)
        self._ending = when_collected(self, self._end)

    def close(self) -> None:
        """End all actors. Twice is once."""
        if self._ending.detach():
            self._end()


class RayLane:
    """One actor at a time, while a stage runs. See `_lanes` for what `run` and `stop` promise.

    home: the node of its actors, as long as that is there.
    """

    def __init__(self, shop: "RayShop", stop_flag: StopFlag, home: RaySpot) -> None:
        self._shop, self._stop_flag, self._home = shop, stop_flag, home
        self._lock = threading.Lock()
        self._actor: Any = None
        self._program: object = None
        self._spot = home
        self._busy = self._stopped = False

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        shop = self._shop
        numbers = [stage.number for stage in stages]
        returns = 1 + sum(len(shop.kept[number]) for number in numbers)

        def begin(actor: Any) -> list[Any]:
            pairs = zip(stages, values, strict=True)
            rows, lying = shop.packed([shop.taken(self._spot, stage, row) for stage, row in pairs])
            refs = actor.run.options(num_returns=returns).remote(numbers, rows, *lying)
            return refs if returns > 1 else [refs]

        (found, failure, *_), stays = self._asked(stages, values, begin)
        if failure is not None:
            raise raised(*failure)
        rest = iter(stays)
        pairs = zip(stages, found, strict=True)
        opened = [(stage, shop.opened(stage, row, rest)) for stage, row in pairs]
        return [shop.given(self._spot, stage, row) for stage, row in opened]

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        """What a map gives its only stage lies in no Ray."""
        shop = self._shop
        some = rows[:1] if stage.number in shop.limits else rows

        def begin(actor: Any) -> list[Any]:
            taken = _until_refused(partial(shop.taken, self._spot, stage), some)
            return [actor.run_rows.remote(stage.number, taken, BATCH_SECONDS)]

        (found, failure, times, _), _ = self._asked([stage] * len(some), some, begin)
        for row in found:
            results.append(shop.given(self._spot, stage, writable(row)))
        if failure is not None:
            raise raised(*failure)
        return times

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        """Ray says which cores are whose; no task that needs devices runs in it."""

    def stop(self) -> None:
        with self._lock:
            if self._busy:
                self._stopped = True
                self._kill()

    def lose(self, name: str) -> None:
        """The node of this name is gone."""
        with self._lock:
            if self._spot.name == name:
                self._kill()

    def at(self, _: int) -> None:
        """An actor does not say it."""

    def end(self) -> None:
        """For the close of all lanes."""
        with self._lock:
            self._stopped = self._busy
            self._kill()

    def _asked(
        self,
        stages: Sequence[Stage],
        values: Sequence[Values],
        begin: Callable[[Any], list[Any]],
    ) -> tuple[RayAnswer, Sequence[Any]]:
        """What an actor answers, and references to what stays in Ray."""
        shop, stage = self._shop, stages[0]
        self._begin(stage)
        try:
            answer, *stays = shop.begun(begin, self._hire(stage), stages, values)
            found: RayAnswer = shop.ray.get(answer, timeout=shop.limits.get(stage.number))
            shop.print(found)
            return found, stays
        except shop.ray.exceptions.RayError as error:
            raise self._error(stage, values[0], error) from None
        except FlowosError:
            raise
        except BaseException:
            self._drop()
            raise
        finally:
            self._leave(stage)

    def _begin(self, stage: Stage) -> None:
        with self._lock:
            self._shop.refuse_over()
            if self._stop_flag.on:
                raise Cancelled(f"stopped before task {stage.steps[0].label!r}")
            self._busy, self._stopped = True, False

    def _hire(self, stage: Stage) -> Any:
        """An actor that knows the program; it ends with this process."""
        shop, label, complaint = self._shop, stage.steps[0].label, ""
        for program in shop.programs():
            spot = shop.cluster.spot_for(self._home)
            if spot is None:
                raise WorkerLost(f"task {label!r}: all nodes of Ray are gone")
            with self._lock:
                if self._stopped or shop.closed:
                    raise Cancelled(_STOPPED)
                self._spot, self._program = spot, program
                self._actor, runs = shop.actor(spot, stage.needs, program)
                actor = self._actor
            if runs is program:
                return actor
            complaint, node = shop.ray.get(actor.load.remote(program))
            self._spot = shop.cluster.spot_of(node, spot)
            if not complaint:
                return actor
            self._drop()
            if isinstance(complaint, tuple):
                raise LaunchFailed(
                    f"task {label!r}: the worker of Ray on {self._spot.name} has "
                    f"{unlike_words(complaint)}: Ray's nodes need the same one"
                )
        raise LaunchFailed(
            f"task {label!r}: the flow cannot be loaded in a worker of Ray ({complaint}); move its "
            "functions into a module that Ray's nodes have, or run it with workers='process'"
        )

    def _leave(self, stage: Stage) -> None:
        """Give the actor back; a stop that came too late for its run has ended it."""
        if self._stopped or self._shop.takes_cores(stage.needs):
            self._drop()
        with self._lock:
            actor, self._actor = self._actor, None
            self._busy = False
        if actor is not None:
            self._shop.cluster.put(self._shop.key(self._spot), actor, self._program)

    def _drop(self) -> None:
        """End the actor."""
        with self._lock:
            self._kill()
            self._actor = None

    def _kill(self) -> None:
        if self._actor is not None:
            self._shop.cluster.kill(self._actor)

    def _error(self, stage: Stage, row: Values, error: Any) -> FlowosError:
        """In our words. The actor ends, but where it goes on."""
        known = self._shop.ray.exceptions
        cause = error.cause if isinstance(error, known.RayTaskError) else None
        if failure := failure_of(stage, cause, error, known):
            return failure
        self._drop()
        if self._stopped or self._shop.closed:
            return Cancelled(_STOPPED)
        if isinstance(error, known.GetTimeoutError):
            shown = [value.open() if type(value) is InRay else value for value in row]
            return over_limit(stage.steps[0], [*shown, *stage.constants])
        return lost_with(stage.steps[0].label, self._spot.name, cause or error)


def _until_refused(take: Callable[[Values], Values], rows: Sequence[Values]) -> list[Values]:
    """For the rows before the first that is refused; that raises if it is the first of all."""
    taken: list[Values] = []
    for row in rows:
        try:
            taken.append(take(row))
        except FlowosError:
            if not taken:
                raise
            break
    return taken


def _lose(lanes: Sequence[RayLane], name: str) -> None:
    for lane in lanes:
        lane.lose(name)


def _close(shop: RayShop, lanes: Sequence[RayLane]) -> None:
    if shop.is_ours:
        shop.closed = True
        for lane in lanes:
            lane.end()
