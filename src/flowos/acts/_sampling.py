"""One sample after the other: the machine is looked at around each, which is kept as it comes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flowos import engine
from flowos.acts._scratch import emptied
from flowos.acts._slice import slice_
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
from flowos.probes import Build, Program, flow_of, state

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
Read = Callable[[], tuple[tuple[Reading, ...], Outcome] | Unmeasured]
"""Runs what measures a case and reads its answer; FlowosError where that cannot be done."""


@dataclass(slots=True, kw_only=True)
class Sampler:
    """Samples cases of one run. `ends`: when the time is out, by the engine's clock.

    scratch: the folder on the storage to be measured, which the cases share.
    """

    run: Run
    keep: Keep
    emit: Emit
    scratch: str | None = None
    ends: float = 0.0
    _spun: tuple[float, state.Spin] | None = None
    _kept: int = 0

    @property
    def left_seconds(self) -> float:
        return self.ends - engine.now()

    def sample(
        self, case: Case, number: int, read: Read, *, others: bool = True
    ) -> list[Sample] | Unmeasured:
        """Measure the case once, as a turn of round `number`. Cancelled when interrupted.

        others: may work that is not a child of ours be taken for that of others?
        """
        self.emit(Progress(doing=case.label, left_seconds=self.left_seconds))
        before, look = self._spin(), engine.look()
        try:
            answer = read()
        except Cancelled:
            raise
        except FlowosError as error:
            answer = Unmeasured(reason=str(error))
        if isinstance(answer, Unmeasured):
            if self.scratch:  # a file half written, full of holes, would be measured next
                emptied(self.scratch)
            return answer
        readings, outcome = answer
        watched = engine.state_between(look, engine.look(), outcome.usage)
        if not others:
            watched = replace(watched, others_cpus=None)
        around = state.around(watched, before, self._spin(fresh=True))
        samples = [_sampled(self.run, case, number, reading, around) for reading in readings]
        for sample in samples:
            self.keep(sample)
            self._kept += 1
            self.emit(Progress(doing=case.label, sample=sample))
        return samples

    def end_early(self) -> None:
        """After an interrupt: what was sampled is kept. KeyboardInterrupt: nothing was."""
        if not self._kept:
            raise KeyboardInterrupt("nothing was measured, so nothing is kept or written")
        self.emit(Progress(doing="interrupted: keeping what was measured"))

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
        try:
            (outcome,) = run_flow(flow_of(program, "state"))
            answer = state.read(outcome)
        except Cancelled:
            raise
        except FlowosError:
            return None
        if isinstance(answer, Unmeasured):
            return None
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
