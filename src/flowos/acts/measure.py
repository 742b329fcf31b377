"""`flowos measure`: facts, cases, builds, then interleaved rounds; each sample kept as it comes.

Success: every case was measured in at least one whole round, or says why not.
Failure: of a case, it becomes an `Unmeasured` with the reason and never ends the run.
Ctrl-C: what was sampled is kept, and the run so far is the answer.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from flowos import engine
from flowos.acts._slice import slice_
from flowos.acts._work import Part, Work, work
from flowos.model import (
    Cancelled,
    Case,
    Design,
    Flow,
    FlowosError,
    MachineState,
    Outcome,
    Reading,
    Run,
    Sample,
    Unmeasured,
    UsageError,
)
from flowos.plan import limits_for, next_round
from flowos.probes import Probe, Program, flow_of, flow_of_builds, state

BUDGET_SECONDS = {"quick": 52.0, "normal": 165.0, "full": 3600.0}
"""What measuring may take; facts, builds and the report come on top."""

_STALE_SECONDS = 0.5
_SLACK, _MOST = 1.1, 0.6
_OUT_OF_TIME = Unmeasured(
    reason="the time was out before its turn",
    remedy="give more time, as in `flowos measure --minutes 10`",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run is. left_seconds: None while it cannot be said. lasting: is to stay shown."""

    doing: str
    lasting: bool = False
    left_seconds: float | None = None
    sample: Sample | None = None


Keep = Callable[[Sample], None]
Emit = Callable[[Progress], None]


def measure(run: Run, *, keep: Keep, emit: Emit, seconds: float | None = None) -> Run:
    """Measure what `run.wanted` asks for and hand each sample to `keep`.

    seconds: the budget, which is used up by more rounds; by default that of the effort. Answers
    with the run and what could not be measured. On Ctrl-C raises nothing: the samples kept so far
    stand.
    """
    todo = work(run.facts, run.wanted)
    budget = BUDGET_SECONDS[run.wanted.effort] if seconds is None else seconds
    with _scratch_in(run.wanted.scratch) as scratch:
        session = _Session(run=run, scratch=scratch, keep=keep, emit=emit)
        session.unmeasured.update(todo.unmeasured)
        try:
            session.build(todo)
            session.ends = engine.now() + budget
            for part, share, kept in zip(todo.parts, todo.shares, todo.reserves, strict=True):
                often = part if seconds is None else part.as_often_as_time_allows
                session.measure(often, share, kept)
        except (KeyboardInterrupt, Cancelled):
            emit(Progress(doing="interrupted: keeping what was measured"))
    unmeasured = tuple(session.unmeasured.items())
    return replace(run, unmeasured=unmeasured, ended=engine.utc())


@contextmanager
def _scratch_in(folder: PurePath) -> Iterator[str]:
    """A fresh folder on the storage to be measured. UsageError where none can be made."""
    try:
        fresh = tempfile.TemporaryDirectory(prefix="flowos-", dir=folder)
    except OSError as error:
        raise UsageError(
            f"no folder can be made in {folder} ({error.strerror}): give another with --scratch"
        ) from error
    with fresh as name:
        yield name


@dataclass(slots=True, kw_only=True)
class _Session:
    """A run under way: what is left of its time, and what could not be measured so far."""

    run: Run
    scratch: str
    keep: Keep
    emit: Emit
    ends: float = 0.0
    unmeasured: dict[Case, Unmeasured] = field(default_factory=dict)
    spin: tuple[float, state.Spin] | None = None

    def build(self, todo: Work) -> None:
        """Compile all programs before the first sample, so that no compiler runs between two."""
        spinner = state.program(self.run.facts)
        builds = {program.build for _case, program in todo.programs if program.build}
        if isinstance(spinner, Program) and spinner.build:
            builds.add(spinner.build)
        programs = "1 program" if len(builds) == 1 else f"{len(builds)} programs"
        self.emit(Progress(doing=f"building {programs}"))
        flow = flow_of_builds(sorted(builds, key=lambda b: b.key))
        if flow is not None:
            with suppress(FlowosError):  # the case that needs it says why when it is measured
                _run(flow)

    def measure(self, part: Part, share: float, reserve: float) -> None:
        """Rounds of one probe until its design is done or its time is out.

        Its time is its share of what is left, less where later probes could not measure each case
        once, and what each of its own cases takes once, if that is more and most of it is left.
        """
        seen: list[Sample] = []
        left = self.ends - engine.now()
        once = _SLACK * part.once_seconds
        least = once if left >= _MOST * once else left
        until = engine.now() + max(min(share * left, left - reserve), least)
        number, tried = 0, set[Case]()
        while cases := next_round(
            self._without_unmeasured(part.design),
            seen,
            until - engine.now(),
            limits_for(self.run.facts.architecture, (s.state for s in seen)),
        ):
            number += 1
            for case in cases:
                if case not in self.unmeasured:
                    seen += self._sample(part.probe, case, number)
                    tried.add(case)
        for case in part.design.cases:
            if case not in tried:
                self.unmeasured.setdefault(case, _OUT_OF_TIME)

    def _without_unmeasured(self, design: Design) -> Design:
        return replace(design, cases=tuple(c for c in design.cases if c not in self.unmeasured))

    def _sample(self, probe: Probe, case: Case, number: int) -> list[Sample]:
        self.emit(Progress(doing=case.label, left_seconds=self.ends - engine.now()))
        before, look = self._spin(), engine.look()
        answer = self._read(probe, case)
        if isinstance(answer, Unmeasured):
            self.unmeasured[case] = answer
            return []
        readings, outcome = answer
        watched = engine.state_between(look, engine.look(), outcome.usage)
        around = state.around(watched, before, self._spin(fresh=True))
        samples = [_sampled(self.run, case, number, reading, around) for reading in readings]
        for sample in samples:
            self.keep(sample)
            self.emit(Progress(doing=case.label, sample=sample))
        return samples

    def _read(self, probe: Probe, case: Case) -> tuple[tuple[Reading, ...], Outcome] | Unmeasured:
        try:
            flow = flow_of(probe.program(case), case.label, self.scratch)
            (outcome,) = _run(flow)
            readings = probe.read(case, outcome)
        except Cancelled:
            raise
        except FlowosError as error:
            return Unmeasured(reason=str(error))
        return readings if isinstance(readings, Unmeasured) else (readings, outcome)

    def _spin(self, *, fresh: bool = False) -> state.Spin | None:
        """What spinning shows now; the last answer serves for half a second."""
        if self.spin and not fresh and engine.now() - self.spin[0] < _STALE_SECONDS:
            return self.spin[1]
        program = state.program(self.run.facts)
        if isinstance(program, Unmeasured):
            return None
        try:
            (outcome,) = _run(flow_of(program, "state"))
            answer = state.read(outcome)
        except Cancelled:
            raise
        except FlowosError:
            return None
        if isinstance(answer, Unmeasured):
            return None
        self.spin = (engine.now(), answer)
        return answer


def _run(flow: Flow) -> list[Any]:
    with slice_(flow) as held:
        return held.run()


def _sampled(run: Run, case: Case, number: int, reading: Reading, around: MachineState) -> Sample:
    swept = case.at(**dict(reading.levels)) if reading.levels else case
    return Sample(
        run=run.id,
        case=replace(swept, details=(*case.details, *reading.notes)),
        round=number,
        metric=reading.metric,
        unit=reading.unit,
        values=reading.values,
        state=around,
    )
