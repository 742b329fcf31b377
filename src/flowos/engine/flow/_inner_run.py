"""What a cond or a loop runs whose tasks are stages: a run within another."""

from collections.abc import Sequence
from functools import partial

from flowos.engine.flow._control import choose
from flowos.engine.flow._failures import in_round, not_done
from flowos.engine.flow._lanes import Lane, Values
from flowos.engine.flow._runs import ExecutionSlot, FlowRun, OnStage, TimedRun, run_stages
from flowos.model import Cond, FlowosError, Loop, brief_repr
from flowos.plan import Schedule, Stage


class InnerRun(FlowRun):
    """A branch of a cond, or a round of a loop. Its end and its error are those of `root`.

    outer: the run that the cond or loop, `stage`, belongs to. fixed: inputs of a loop that are the
    same in all rounds. round: of a loop, from 1 on.
    """

    __slots__ = ("fixed", "outer", "round", "stage", "top")

    def __init__(
        self,
        outer: FlowRun,
        stage: Stage,
        schedule: Schedule,
        values: Sequence[object],
        round: int = 0,
    ) -> None:
        self.prepare(schedule, values)
        self.outer = outer
        self.stage = stage
        self.round = round
        self.top = outer.root
        body = stage.steps[0].task.body
        self.fixed = values[body.state :] if isinstance(body, Loop) else ()

    @property
    def root(self) -> FlowRun:
        return self.top

    @property
    def first(self) -> int:  # type: ignore[override]
        return self.top.first

    @property
    def done(self) -> bool:  # type: ignore[override]
        return self.top.done

    @property
    def rounds(self) -> tuple[int, ...]:  # type: ignore[override]
        return (*self.outer.rounds, self.round) if self.round else self.outer.rounds

    def run(
        self, on_stage: OnStage | None, place: ExecutionSlot, lane: Lane, stages: Sequence[Stage]
    ) -> Sequence[Values]:
        """Run stages of it, in the time of the whole run."""
        work = partial(run_stages, self, on_stage, place, lane, stages)
        return self.top.timed(work) if isinstance(self.top, TimedRun) else work()

    def repeat(self, stage: Stage) -> None:
        super().repeat(stage)
        if self.attempt(stage) > self.top.attempt(stage):
            self.top.repeat(stage)

    def failed(self, error: BaseException) -> BaseException:
        if self.round and isinstance(error, FlowosError):
            error = in_round(error, self.round, self.stage.label)
        return self.outer.failed(error)

    def after(self) -> "InnerRun | Values":
        """The next round, or what the cond or loop gives.

        Raises RoundLimitExceeded if that was the last one and the loop is not done.
        """
        results = [self.slots[slot] for slot in self.schedule.outputs]
        (step,) = self.stage.steps
        loop = step.task.body
        if isinstance(loop, Loop):
            over = loop.until and results.pop()
            if not over and self.round < loop.max_rounds:
                values = (*results[: loop.state], *self.fixed)
                return InnerRun(self.outer, self.stage, self.schedule, values, self.round + 1)
            if loop.until and not over:
                raise not_done(step, map(brief_repr, results))
        by_register = dict(zip(step.outputs, results, strict=True))
        return [by_register[register] for register in self.stage.returns]


def entered(outer: FlowRun, stage: Stage) -> InnerRun:
    """The branch that the cond chooses, or the loop's first round."""
    (step,) = stage.steps
    frame = [*(outer.slots[slot] for slot in stage.inputs), *stage.constants]
    values = [frame[register] for register in step.inputs]
    if isinstance(step.task.body, Cond):
        which, inputs = choose(step.task.body.takes, values)
        return InnerRun(outer, stage, stage.flows[which], inputs)
    return InnerRun(outer, stage, stage.flows[0], values, 1)
