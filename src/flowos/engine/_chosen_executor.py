"""Runs of flows whose tasks have several bodies: measurement says on which engine each runs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from flowos._dataclasses import replace
from flowos.engine._engine_history import NOTED, SIZES, EngineHistory
from flowos.engine.flow._executor import Executor, LoneStage, lone_stage
from flowos.engine.flow._lanes import Lanes, Values
from flowos.engine.flow._planned_run import site_numbers
from flowos.engine.flow._runs import FlowRun, MapBatch
from flowos.engine.flow._threads import ThreadLane, ThreadLanes
from flowos.engine.flow._written_files import with_present_files
from flowos.model import (
    ChosenEngines,
    EngineMissing,
    EnginePlan,
    Flow,
    TaskFailed,
    with_chosen,
)
from flowos.plan import Fuse, Schedule, Stage, Step, compile_flow, with_resident_arrays

_Forced = Callable[[Sequence[str], Mapping[str, int]], LoneStage | None]


def chosen_executor(
    flow: Flow,
    allowed: Sequence[str] | None,
    fuse: Fuse,
    history: EngineHistory,
) -> Callable[..., Executor]:
    """Makes executors of the flow that `with_engines(flow, allowed, ...)` gives."""

    def forced(engines: Sequence[str], sites: Mapping[str, int]) -> LoneStage | None:
        compiled = compile_flow(with_chosen(flow, allowed, engines), fuse=fuse)
        lone = lone_stage(with_resident_arrays(with_present_files(compiled), across=True))
        if lone is None or any(_may_have_board(step) for step in lone.stage.steps):
            return None
        engine_of = {label: engines[number] for label, number in sites.items()}
        steps = (replace(s, engine=engine_of.get(s.label, "")) for s in lone.stage.steps)
        return lone._replace(stage=replace(lone.stage, steps=tuple(steps)))

    return partial(ChosenExecutor, history=history, forced=forced, n_outputs=len(flow.outputs))


def _may_have_board(step: Step) -> bool:
    return getattr(step.task.body, "engine", "") == "hdl"


class ChosenExecutor(Executor):
    """Runs of a flow of `with_engines`, which take no engines and give no notes.

    Where tasks run in threads, a run that is not noted takes a stage whose tasks have one body
    each. forced: makes it for the engines of all sites, given their numbers by label; None where
    there is no such stage.
    """

    def __init__(
        self,
        schedule: Schedule,
        lanes: Lanes,
        *parts: Any,
        history: EngineHistory,
        forced: _Forced,
        n_outputs: int,
        **named: Any,
    ) -> None:
        super().__init__(schedule, lanes, *parts, **named)
        self._history, self._forced, self._n_outputs = history, forced, n_outputs
        plain = all(type(place.python) is ThreadLane for place in self.places)
        self._direct = lanes if self._only and plain and isinstance(lanes, ThreadLanes) else None
        self._only = None
        self._sites = site_numbers(schedule)
        self._stages_of: dict[tuple[str, ...], LoneStage | None] = {}
        self._stage_of_sizes: dict[tuple[int, ...], LoneStage] = {}
        self._adding = threading.Lock()

    def run(
        self, values: Sequence[object], first: int = 1, lone: LoneStage | None = None
    ) -> list[object] | None:
        turn = next(self._history.turns)
        sizes = None
        try:  # the quick way, of arrays alone
            sizes = tuple([value.nbytes for value in values])  # type: ignore[attr-defined]
            lone = self._stage_of_sizes[sizes]
        except KeyError:
            lone = None
        except Exception:  # a property raised, or nbytes cannot be hashed
            lone = sizes = None
        if lone is None or not turn % NOTED:
            chosen = self._history.begin(values, turn)
            lone = self._stage(chosen, sizes)
            if lone is None:
                run = super().start((*values, chosen), partial(FlowRun, first=first))
                return None if run is None else self.finish(run)
        try:
            return Executor.run(self, values, first, lone)
        except TaskFailed as error:
            if not isinstance(error.__cause__, EngineMissing):
                raise
        self._direct = None  # each task looks for another engine from now on
        self._stage_of_sizes.clear()
        return self.run(values, first)

    def stages_of(self, sites: EnginePlan) -> Sequence[Stage]:
        engines = tuple(task.engine for task in sites.tasks)
        direct = sites.state == "chosen" and self._direct is not None
        lone = self._forced(engines, self._sites) if direct else None
        return super().stages_of(sites) if lone is None else (lone.stage,)

    def _stage(self, chosen: ChosenEngines, sizes: tuple[int, ...] | None) -> LoneStage | None:
        """For a run that is not noted; kept for others whose values have these sizes."""
        if sizes is not None:
            self._stage_of_sizes.pop(sizes, None)
        direct = self._direct  # another thread may find that an engine is missing
        if chosen.noted or direct is None:
            return None
        with self._adding:
            if chosen.engines not in self._stages_of:
                lone = self._forced(chosen.engines, self._sites)
                added = lone and lone._replace(stage=direct.added(lone.stage))
                self._stages_of[chosen.engines] = added
        found = self._stages_of[chosen.engines]
        if found is not None and sizes is not None:
            if len(self._stage_of_sizes) > SIZES:
                self._stage_of_sizes.clear()
            self._stage_of_sizes[sizes] = found
        return found

    def start(
        self, values: Sequence[object], made: Callable[..., FlowRun] = FlowRun
    ) -> FlowRun | None:
        return super().start((*values, self._history.begin(values)), made)

    def start_batch(
        self, items: Sequence[Values], *, goes_on: bool, first: int = 1
    ) -> MapBatch | None:
        chosen = [(*values, self._history.begin(values)) for values in items]
        return super().start_batch(chosen, goes_on=goes_on, first=first)

    def outputs(self, run: FlowRun) -> list[object]:
        return self._noted(super().outputs(run))

    def finish_batch(self, batch: MapBatch) -> list[list[object]]:
        return [self._noted(each) for each in super().finish_batch(batch)]

    def _noted(self, found: list[Any]) -> list[object]:
        notes = found[self._n_outputs :]
        if any(notes):
            if any(note is not None and note.missing for note in notes):
                self._stage_of_sizes.clear()
            self._history.end([note for note in notes if note is not None])
        return found[: self._n_outputs]
