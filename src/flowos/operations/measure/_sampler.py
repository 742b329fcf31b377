"""Takes samples one by one, with the machine's state around each, and keeps each at once."""

from collections.abc import Callable, Sequence
from pathlib import Path

from flowos import engine
from flowos._dataclasses import dataclass, replace
from flowos.engine import Node
from flowos.model import (
    Cancelled,
    Case,
    FlowosError,
    MachineState,
    OnProgress,
    Outcome,
    Progress,
    Reading,
    Run,
    Sample,
    Unmeasured,
)
from flowos.operations._scratch import Scratch
from flowos.operations.measure._time import STOPPED
from flowos.probes import Program, state

INTERRUPTED, TIME_WAS_OUT = "it was interrupted", "its time was out"
_MIN_GRACE_SECONDS, _GRACE_SHARE = 5.0, 0.1
_STALE_SECONDS = 0.5


SampleAnswer = tuple[tuple[Reading, ...], Outcome] | Unmeasured


@dataclass(slots=True, kw_only=True)
class Sampler:
    """Samples cases of one run, from `begin` on for so many seconds.

    A program that runs at the end of the time is stopped after another 5 s, or a tenth of the time.
    scratch: the folder on the storage to be measured, which the cases share. spin: runs the program
    that checks the machine. gone: see `DeployedOn`.
    """

    run: Run
    node: Node
    keep: Callable[[Sample], None]
    on_progress: OnProgress
    scratch: Scratch | None = None
    spin: Callable[[Program], Outcome] | None = None
    gone: Callable[[], str] = str
    _ends: float = 0.0
    _stops: float = 0.0
    _spun: tuple[float, state.Spin] | None = None
    _kept: int = 0

    @property
    def left_seconds(self) -> float:
        return self._ends - engine.now()

    def begin(self, seconds: float) -> None:
        """Start the clock."""
        self._ends = engine.now() + seconds
        self._stops = self._ends + max(_MIN_GRACE_SECONDS, _GRACE_SHARE * seconds)

    def limited(self, program: Program, among: int = 1) -> Program:
        """The same program, stopped well after the end of the time. among: how many take turns."""
        left = max(1.0, self._stops - engine.now())
        return replace(program, limit_seconds=min(program.limit_seconds, left / among))

    @property
    def stopped(self) -> bool:
        """Is it well after the end of the time?"""
        return engine.now() >= self._stops

    def sample(
        self,
        cases: Sequence[Case],
        number: int,
        read: Callable[[], Sequence[SampleAnswer]],
        *,
        others: bool = True,
        on_storage: bool = False,
        on_gpu: bool = False,
    ) -> list[list[Sample] | Unmeasured]:
        """Measure a case once, as a turn of round `number`; several cases, if they run at once.

        read: runs the programs and returns their answers, in their order; raises FlowosError if it
        fails. others: is work of processes that are not our children a disturbance? on_storage: is
        the storage of `scratch` measured, so that traffic of others is a disturbance? on_gpu:
        is a GPU alone measured, for which the state of processors says nothing? Raises Cancelled
        when interrupted, or once a node is gone.
        """
        self._check_nodes()
        also = f", {len(cases) - 1} next to it in turns" if len(cases) > 1 else ""
        self.on_progress(Progress(doing=cases[0].label + also, left_seconds=self.left_seconds))
        storage = Path(self.scratch.path) if on_storage and self.scratch else None
        before, look = self._spin(), self.node.look(storage)
        try:
            answers = read()
        except Cancelled:
            raise
        except (FlowosError, OSError) as error:  # a full disk does not end the run
            answers = [Unmeasured(reason=str(error))] * len(cases)
        self._check_nodes()
        usages = [answer[1].usage for answer in answers if not isinstance(answer, Unmeasured)]
        watched = engine.state_between(look, self.node.look(storage), *usages)
        if not others:
            watched = replace(watched, others_cpus=None, others_disk=None)
        around = state.around(watched, before, self._spin(fresh=True)) if usages else watched
        if storage is None:
            around = replace(around, io_pressure=None)
        if on_gpu:
            around = MachineState()
        return [
            self._kept_of(case, number, answer, around, interleaved=len(cases) > 1)
            for case, answer in zip(cases, answers, strict=True)
        ]

    def _kept_of(
        self,
        case: Case,
        number: int,
        answer: SampleAnswer,
        around: MachineState,
        *,
        interleaved: bool,
    ) -> list[Sample] | Unmeasured:
        if isinstance(answer, Unmeasured):
            answer = STOPPED if self.stopped else answer
            if self.scratch:  # else a half-written file with holes is measured next
                self.scratch.empty()
            return answer
        samples = [_sampled(self.run, case, number, reading, around) for reading in answer[0]]
        samples = [replace(sample, interleaved=interleaved) for sample in samples]
        for sample in samples:
            self.keep(sample)
            self._kept += 1
        return samples

    def _check_nodes(self) -> None:
        if why := self.gone():
            raise Cancelled(why)

    def end_early(self) -> str:
        """Keep what was sampled until then; returns why the run ended early.

        Raises KeyboardInterrupt if there is no sample, after an interrupt.
        """
        if why := self.gone():
            return why
        if not self._kept:
            raise KeyboardInterrupt("nothing was measured, so nothing is kept or written")
        self.on_progress(Progress(doing="interrupted: keeping what was measured"))
        return INTERRUPTED

    def _spin(self, *, fresh: bool = False) -> state.Spin | None:
        """The result of a spin; the last one is reused for half a second."""
        if self._spun and not fresh and engine.now() - self._spun[0] < _STALE_SECONDS:
            return self._spun[1]
        program = state.program(self.run.facts)
        if isinstance(program, Unmeasured) or self.spin is None:
            return None
        look = self.node.look()
        try:
            answer = state.read(self.spin(self.limited(program)))
        except Cancelled:
            raise
        except (FlowosError, OSError):
            return None
        if isinstance(answer, Unmeasured):
            return None
        answer = replace(answer, io_pressure=engine.io_pressure_between(look, self.node.look()))
        self._spun = (engine.now(), answer)
        return answer


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
