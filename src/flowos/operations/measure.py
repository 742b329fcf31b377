"""`flowos measure`: facts, cases, builds, then interleaved rounds; each sample kept as it comes.

Success: every case was measured in at least one whole round, or says why not.
Failure: of a case, it becomes an `Unmeasured` with the reason and never ends the run.
Ctrl-C: what was sampled is kept, and the run so far is the answer; KeyboardInterrupt, if nothing
was.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace

from flowos import engine
from flowos.model import (
    Cancelled,
    Case,
    Design,
    FlowosError,
    Outcome,
    Reading,
    Run,
    Sample,
    Unmeasured,
)
from flowos.operations._measurement_plan import (
    MIN_SHARE,
    MeasurementPlan,
    ProbePlan,
    once_each,
    seconds_for,
    work,
)
from flowos.operations._sampling import (
    STOPPED,
    TIME_WAS_OUT,
    Emit,
    Keep,
    Progress,
    Sampler,
    run_flow,
)
from flowos.operations._scratch import scratch_in
from flowos.plan import limits_for, next_round
from flowos.probes import Probe, flow_of, flow_of_builds

__all__ = ["BUDGET_SECONDS", "Emit", "Keep", "Progress", "measure"]

BUDGET_SECONDS = {"quick": 52.0, "normal": 165.0, "full": 3600.0}
"""What measuring may take; facts, builds and the report come on top. See `Sampler` for the end."""

_OUT_OF_TIME = Unmeasured(
    reason="the time was out before its turn",
    remedy="give more time, as in `flowos measure --minutes 10`",
)


def measure(run: Run, *, keep: Keep, emit: Emit, seconds: float | None = None) -> Run:
    """Measure what `run.wanted` asks for and hand each sample to `keep`.

    seconds: the budget, which is used up by more rounds; by default that of the effort. Answers
    with the run and what could not be measured. On Ctrl-C the samples kept so far stand; before the
    first one KeyboardInterrupt is raised.
    """
    todo = work(run.facts, run.wanted)
    budget = BUDGET_SECONDS[run.wanted.effort] if seconds is None else seconds
    with scratch_in(run.wanted.scratch) as scratch:
        sampler = Sampler(run=run, keep=keep, emit=emit, scratch=scratch)
        session = _Session(run=run, scratch=scratch, sampler=sampler)
        session.unmeasured.update(todo.unmeasured)
        try:
            session.build(todo)
            sampler.begin(budget)
            for done, part in enumerate(todo.parts):
                often = part if seconds is None else part.as_often_as_time_allows
                until = engine.now() + seconds_for(todo.parts[done:], sampler.left_seconds)
                session.measure(often, until, once_each(todo.parts[done + 1 :]))
            ended_early = TIME_WAS_OUT if session.cut else ""
        except (KeyboardInterrupt, Cancelled):
            ended_early = sampler.end_early()
    unmeasured = tuple(session.unmeasured.items())
    return replace(run, unmeasured=unmeasured, ended=engine.utc(), ended_early=ended_early)


@dataclass(slots=True, kw_only=True)
class _Session:
    """A run under way: what is left of its time, and what could not be measured so far."""

    run: Run
    scratch: str
    sampler: Sampler
    unmeasured: dict[Case, Unmeasured] = field(default_factory=dict)
    cut: bool = False
    """Was a round not brought to its end, as the time was out?"""

    def build(self, todo: MeasurementPlan) -> None:
        """Compile all programs before the first sample, so that no compiler runs between two."""
        builds = {program.build for _case, program in todo.programs if program.build}
        if self.sampler.build:
            builds.add(self.sampler.build)
        programs = "1 program" if len(builds) == 1 else f"{len(builds)} programs"
        self.sampler.emit(Progress(doing=f"building {programs}"))
        flow = flow_of_builds(sorted(builds, key=lambda b: b.key))
        if flow is not None:
            with suppress(FlowosError, OSError):  # the case that needs it says why in its turn
                run_flow(flow)

    def measure(self, part: ProbePlan, until: float, reserve: float) -> None:
        """Rounds of one probe until its design is done or its time is out.

        A round that takes longer than was thought, as on a busy machine, is cut where most of what
        later probes need (reserve, in seconds) would go.
        """
        seen: list[Sample] = []
        number, tried = 0, set[Case]()
        design = replace(part.design, seed=f"{self.run.id} {part.probe.name}")
        while cases := next_round(
            self._without_unmeasured(design),
            seen,
            until - engine.now(),
            limits_for(self.run.facts.architecture, (s.state for s in seen)),
        ):
            number += 1
            for case in cases:
                if self._is_over(until, reserve):
                    until = engine.now()
                    self.cut = True
                    break
                if case not in self.unmeasured:
                    seen += self._sample(part.probe, case, number, tried)
                    tried.add(case)
        for case in part.design.cases:
            if case not in tried:
                self.unmeasured.setdefault(case, _OUT_OF_TIME)

    def _is_over(self, until: float, reserve: float) -> bool:
        left = self.sampler.left_seconds
        return left <= 0 or (engine.now() >= until and left < MIN_SHARE * reserve)

    def _without_unmeasured(self, design: Design) -> Design:
        return replace(design, cases=tuple(c for c in design.cases if c not in self.unmeasured))

    def _sample(
        self, probe: Probe, case: Case, number: int, tried: Collection[Case]
    ) -> list[Sample]:
        samples = self.sampler.sample(
            case,
            number,
            lambda: self._read(probe, case),
            on_storage=probe.program(case).on_storage,
        )
        if isinstance(samples, Unmeasured):
            self.cut |= samples == STOPPED
            if samples != STOPPED or case not in tried:  # what it gave before stands
                self.unmeasured[case] = samples
            return []
        return samples

    def _read(self, probe: Probe, case: Case) -> tuple[tuple[Reading, ...], Outcome] | Unmeasured:
        program = self.sampler.limited(probe.program(case))
        (outcome,) = run_flow(flow_of(program, case.label, self.scratch))
        readings = probe.read(case, outcome)
        return readings if isinstance(readings, Unmeasured) else (readings, outcome)
