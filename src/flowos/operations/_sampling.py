"""One sample after the other: the machine is looked at around each, which is kept as it comes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flowos import engine
from flowos.model import (
    Cancelled,
    Case,
    Flow,
    FlowosError,
    MachineState,
    Outcome,
    Reading,
    Run,
    Sample,
    Unmeasured,
)
from flowos.operations._scratch import emptied
from flowos.operations._slice import slice_
from flowos.probes import Build, Program, flow_of, state

INTERRUPTED, TIME_WAS_OUT = "it was interrupted", "its time was out"
STOPPED = Unmeasured(
    reason="it still ran when the time was well past, and was stopped",
    remedy="give more time (--minutes), or measure when the machine has less to do",
)
_LEAST_GRACE_SECONDS, _GRACE_SHARE = 5.0, 0.1
_STALE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run is. left_seconds: None while it cannot be said. lasting: is to stay shown."""

    doing: str
    lasting: bool = False
    left_seconds: float | None = None
    sample: Sample | None = None


Keep = Callable[[Sample], None]
Emit = Callable[[Progress], None]
Answer = tuple[tuple[Reading, ...], Outcome] | Unmeasured
Read = Callable[[], Answer]
"""Runs what measures a case and reads its answer; FlowosError where that cannot be done."""


@dataclass(slots=True, kw_only=True)
class Sampler:
    """Samples cases of one run, from `begin` on for so many seconds.

    What runs when they are over may end within 5 s, or a tenth of them; then it is stopped.
    scratch: the folder on the storage to be measured, which the cases share.
    """

    run: Run
    keep: Keep
    emit: Emit
    scratch: str | None = None
    _ends: float = 0.0
    _stops: float = 0.0
    _spun: tuple[float, state.Spin] | None = None
    _kept: int = 0

    @property
    def left_seconds(self) -> float:
        return self._ends - engine.now()

    def begin(self, seconds: float) -> None:
        """From now on."""
        self._ends = engine.now() + seconds
        self._stops = self._ends + max(_LEAST_GRACE_SECONDS, _GRACE_SHARE * seconds)

    def limited(self, program: Program, among: int = 1) -> Program:
        """The same program, stopped when the time is well past. among: so many take turns."""
        left = max(1.0, self._stops - engine.now())
        return replace(program, limit_seconds=min(program.limit_seconds, left / among))

    @property
    def stopped(self) -> bool:
        """Is the time well past?"""
        return engine.now() >= self._stops

    def sample(
        self,
        case: Case,
        number: int,
        read: Read,
        *,
        others: bool = True,
        on_storage: bool = False,
    ) -> list[Sample] | Unmeasured:
        """Measure the case once, as a turn of round `number`. Cancelled when interrupted.

        others: may work that is not a child of ours be taken for that of others? on_storage: is it
        the storage below `scratch` that is measured, so that traffic of others counts?
        """
        (found,) = self.sample_together(
            [case], number, lambda: [read()], others=others, on_storage=on_storage
        )
        return found

    def sample_together(
        self,
        cases: Sequence[Case],
        number: int,
        read: Callable[[], Sequence[Answer]],
        *,
        others: bool = True,
        on_storage: bool = False,
    ) -> list[list[Sample] | Unmeasured]:
        """The same of several cases whose programs run at once; what is read is in their order."""
        beside = f", {len(cases) - 1} beside it in turns" if len(cases) > 1 else ""
        self.emit(Progress(doing=cases[0].label + beside, left_seconds=self.left_seconds))
        storage = Path(self.scratch) if on_storage and self.scratch else None
        before, look = self._spin(), engine.look(storage=storage)
        try:
            answers = read()
        except Cancelled:
            raise
        except (FlowosError, OSError) as error:  # a disk that is full is no end of the run
            answers = [Unmeasured(reason=str(error))] * len(cases)
        usages = [answer[1].usage for answer in answers if not isinstance(answer, Unmeasured)]
        watched = engine.state_between(look, engine.look(storage=storage), *usages)
        if not others:
            watched = replace(watched, others_cpus=None, others_disk=None)
        around = state.around(watched, before, self._spin(fresh=True)) if usages else watched
        if storage is None:
            around = replace(around, io_pressure=None)
        return [
            self._kept_of(case, number, answer, around, in_turns=len(cases) > 1)
            for case, answer in zip(cases, answers, strict=True)
        ]

    def _kept_of(
        self, case: Case, number: int, answer: Answer, around: MachineState, *, in_turns: bool
    ) -> list[Sample] | Unmeasured:
        if isinstance(answer, Unmeasured):
            answer = STOPPED if self.stopped else answer
            if self.scratch:  # a file half written, full of holes, would be measured next
                emptied(self.scratch)
            return answer
        samples = [_sampled(self.run, case, number, reading, around) for reading in answer[0]]
        samples = [replace(sample, in_turns=in_turns) for sample in samples]
        for sample in samples:
            self.keep(sample)
            self._kept += 1
            self.emit(Progress(doing=case.label, sample=sample))
        return samples

    def end_early(self) -> str:
        """After an interrupt: what was sampled is kept. KeyboardInterrupt: nothing was.

        Why the run ended before its time.
        """
        if not self._kept:
            raise KeyboardInterrupt("nothing was measured, so nothing is kept or written")
        self.emit(Progress(doing="interrupted: keeping what was measured"))
        return INTERRUPTED

    @property
    def build(self) -> Build | None:
        """What must be compiled for looking at the machine."""
        program = state.program(self.run.facts)
        return program.build if isinstance(program, Program) else None

    def _spin(self, *, fresh: bool = False) -> state.Spin | None:
        """What spinning shows now; the last answer serves for half a second."""
        if self._spun and not fresh and engine.now() - self._spun[0] < _STALE_SECONDS:
            return self._spun[1]
        program = state.program(self.run.facts)
        if isinstance(program, Unmeasured):
            return None
        look = engine.look()
        try:
            (outcome,) = run_flow(flow_of(self.limited(program), "state"))
            answer = state.read(outcome)
        except Cancelled:
            raise
        except (FlowosError, OSError):
            return None
        if isinstance(answer, Unmeasured):
            return None
        answer = replace(answer, io_pressure=engine.io_pressure_between(look, engine.look()))
        self._spun = (engine.now(), answer)
        return answer


def run_flow(flow: Flow) -> list[Any]:
    """Run a flow once on this node, bare."""
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
