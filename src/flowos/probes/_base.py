"""The Probe protocol, descriptions of its programs, and the reader of their answers."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from flowos._dataclasses import dataclass, replace
from flowos.model import (
    EQUAL_MARGIN,
    Advice,
    Argv,
    Case,
    Chart,
    Compiler,
    Exited,
    Facts,
    MeasureError,
    Measurement,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Sample,
    Unmeasured,
)
from flowos.plan import NoiseThresholds
from flowos.probes._build import Build
from flowos.probes._intensity import Intensity
from flowos.probes._nominal import Nominal, no_nominal
from flowos.probes._tuning_gain import TuningGain

CANNOT_MEASURE_HERE = 77

ENV = "env"
"""The axis of environments."""

EnteringWay = Literal["exec", "shell", "run"]
"""How an environment is entered: by the command itself, by its shell, by its entry point."""

WAYS: tuple[EnteringWay, ...] = ("exec", "shell", "run")


@dataclass(frozen=True)
class Headline:
    """A key number of a machine: the best measurement with these levels."""

    label: str
    metric: str
    levels: Pairs = ()

    def fits(self, measured: Measurement) -> bool:
        return measured.metric == self.metric and set(self.levels) <= set(measured.case.levels)


@dataclass(frozen=True, kw_only=True)
class ProbeInfo:
    """Constants of a probe.

    rounds: how many its conclusions need; four, if levels are compared.
    ceilings: metrics that bound other numbers, so that their best value counts.
    roofs: metrics that are roofs of a roofline: rates of memory, and of arithmetic by type.
    tunes: the rate that its sweep maximises: best setting, and what each setting gains.
    deciding: metrics whose verdict decides between environments; none where it is not compared.
    margin: a difference between environments counts as equal up to this share.
    env_charts: charts for a comparison of environments.
    nominal: name and value in data sheets for a case's number in a unit.
    alone: is it measured in a single environment too? between_nodes: and between nodes? "named":
        only where the request names it.
    asked: is it measured only where the request says what?
    on_storage: does it measure the storage that the request names? on_own_storage: and copies of it
        on the own storage of each node?
    own_python: is its program run by the Python of each environment, even where the others are the
        same binary in all?
    reads_matrix: does it measure with the matrix that the request names?
    rates_storage: does the bandwidth of its sequential workloads say how fast that is?
    versus: the axis whose first level the others are compared with, as environments are.
    compares: the same, by the rounds that there are.
    warms_up: is each case run once before its first sample, to see that it works and how long it
        takes?
    """

    name: str
    title: str
    charts: tuple[Chart, ...] = ()
    rounds: int = 1
    headlines: tuple[Headline, ...] = ()
    ceilings: Argv = ()
    roofs: Argv = ()
    tunes: str = ""
    deciding: Argv = ()
    margin: float = EQUAL_MARGIN
    env_charts: tuple[Chart, ...] = ()
    nominal: Nominal = no_nominal
    alone: bool = True
    between_nodes: bool | Literal["named"] = False
    asked: bool = False
    on_storage: bool = False
    on_own_storage: bool = False
    own_python: bool = False
    reads_matrix: bool = False
    rates_storage: bool = False
    versus: str = ""
    compares: str = ""
    warms_up: bool = False


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """A case of a probe that is measured in every environment.

    case: the probe's own, from the facts of one environment. shown: its name in all of them; its
    details are of this one.
    """

    probe: "Probe"
    case: Case
    shown: Case

    @property
    def way(self) -> EnteringWay:
        """How the environment is entered."""
        return next((way for way in WAYS if way == self.shown.level("way")), "exec")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A program run once in each environment, to learn what a tool can do in all of them.

    name: as in `Facts.tried`. complaint: why it cannot; "" if it can.
    """

    name: str
    program: "Program"
    complaint: Callable[[Outcome], str]


class Probe(Protocol):
    """One kind of measurement. Methods with a body are optional."""

    info: ClassVar[ProbeInfo]

    @property
    def name(self) -> str:
        return self.info.name

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """The points of the sweep for this node, or why there is none."""
        ...

    def rounds(self, cases: Iterable[Case]) -> int:
        """How many its conclusions from these cases need."""
        return self.info.rounds

    def seconds(self, case: Case) -> float:
        """Approximate time of one measurement of the case, without compiling."""
        ...

    def program(self, case: Case) -> "Program":
        """The program to compile and run to measure the case."""
        ...

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        """The program's answer as readings."""
        return read_answer(outcome)

    def ceiling(self, case: Case) -> Case | None:
        """The case whose best value bounds this one's; `at` sets its probe, levels and metric."""
        return None

    def intensity(self, measured: Measurement) -> Intensity | None:
        """Its place in a roofline; None if its operations or bytes are not known."""
        return None

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """The few cases measured in every environment, for one with these facts."""
        cases = self.cases(facts, request)
        if isinstance(cases, Unmeasured):
            return cases
        return tuple(compared_case(self, case, tuple(dict(case.levels))) for case in cases)

    def decides(self, sample: Sample) -> bool:
        """Is it one of the numbers whose verdict decides between environments?"""
        return sample.metric in self.info.deciding

    def trial(self, facts: Facts, works: Mapping[str, bool]) -> Trial | None:
        """A program to try in every environment. works: what else all of them allow."""
        return None

    def differences(self, base: str, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """Differences to the base in words, for numbers whose ratio says little."""
        return ()

    def headlines(self, measured: Sequence[Measurement]) -> tuple[Headline, ...]:
        """The key numbers, of the probe's own measurements."""
        return self.info.headlines

    def checked(self, measured: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        """The measurements, marked where one number shows that another is implausible."""
        return measured

    def left_out(
        self, measured: Sequence[Measurement], of_pool: Argv = ()
    ) -> tuple[tuple[Case, Unmeasured], ...]:
        """Cases that a program should have measured and left out.

        of_pool: as of `measure_command`, for remedies.
        """
        return ()

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """Conclusions from the probe's own measurements, in sentences."""
        return ()

    def findings_between(
        self, measured: Sequence[Measurement], samples: Sequence[Sample], limits: NoiseThresholds
    ) -> tuple[str, ...]:
        """Conclusions from verdicts between its own cases, in sentences."""
        return ()

    def advice(
        self, measured: Sequence[Measurement], best: TuningGain | None
    ) -> tuple[Advice, ...] | None:
        """Advice from the probe's own measurements; None if there was nothing to look for."""
        return None


def compared_case(
    probe: Probe, case: Case, kept: Sequence[str], stack: str = "", **added: str
) -> ComparedCase:
    """The case, shown only with axes that do not differ between environments: `kept` and `added`.

    stack: the software used in this environment.
    """
    levels: Pairs = tuple(pair for pair in case.levels if pair[0] in kept)
    details = (*case.details, ("stack", stack))
    shown = Case(case.probe, levels=(*levels, *added.items()), details=details)
    return ComparedCase(probe=probe, case=case, shown=shown)


def with_details(case: Case, **details: str) -> Case:
    """The case with these details in place of its own of the same names."""
    return replace(case, details=tuple({**dict(case.details), **details}.items()))


@dataclass(frozen=True, kw_only=True)
class Program:
    """The program that measures one case: an optional build, then a command line.

    argv: without `build` the whole command line, else the arguments of the built binary; a word
    "{scratch}" is replaced by a new folder on the file system to be measured, "{own}" by one on the
    own storage of each node, which may have to be made, "{python}" by the Python that runs FlowOS.
    script: of programs/, for the Python that is the first word of `argv`.
    ranks/mpi_family/mpirun: for an MPI program, their number, its MPI, its mpirun.
    nodes: of a slice, over which ranks are spread evenly; one for each rank by default, as far as
    there are so many.
    starts: number of starts if start-up is measured, else 0.
    takes_turns: can it run side by side with others, one working at a time (flowos_turns.h)?
    memory_bytes: memory held during turns of others, if large.
    on_gpu: is what the processors do meanwhile no disturbance?
    opens: libraries among the words of `argv`, which it loads by these names.
    as_caller: is it started in the request's folder, with the variables that `flowos exec` gives?
    """

    argv: Argv
    build: Build | None = None
    script: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    cores: int = 1
    ranks: int = 1
    nodes: int | None = None
    mpi_family: str = ""
    mpirun: str = ""
    limit_seconds: float = 120.0
    starts: int = 0
    takes_turns: bool = False
    memory_bytes: int = 0
    on_gpu: bool = False
    opens: Argv = ()
    as_caller: bool = False

    @property
    def on_storage(self) -> bool:
        """Does it measure storage?"""
        return not self.as_caller and any("{scratch}" in word for word in self.argv)


def best_compiler(facts: Facts) -> Compiler | None:
    """The C compiler for programs that do not measure compilers: gcc first."""
    order = ("gcc", "clang", "icx", "nvc", "other")
    found = [c for c in facts.compilers if c.language == "c"]
    return min(found, key=lambda c: order.index(c.family), default=None)


def read_answer(outcome: Outcome, program: str = "") -> tuple[Reading, ...] | Unmeasured:
    """Parse the output of one of our measuring programs.

    Format: one JSON object {"readings": [{"metric", "unit", "values", "levels"?, "notes"?}, ...]}
    of one reading at least, where levels and notes are objects of strings; on exit 77
    {"cannot": reason, "remedy"?}.
    program: its name, to find its own error message among those of mpirun.
    """
    said = outcome.stderr.decode(errors="replace").splitlines()
    own = [line.removeprefix(f"{program}: ") for line in said if line.startswith(f"{program}: ")]
    if program and own and outcome.end != Exited(0):
        return Unmeasured(reason=own[0])
    if not isinstance(outcome.end, Exited):
        return Unmeasured(reason=f"the program ended by {outcome.end}", remedy=_tail(outcome))
    if outcome.end.code not in (0, CANNOT_MEASURE_HERE):
        return Unmeasured(reason=f"the program's own check failed: {_tail(outcome)}")
    try:
        answer = json.loads(outcome.stdout or b"{}")
        if outcome.end.code == CANNOT_MEASURE_HERE:
            return Unmeasured(
                reason=answer.get("cannot", _tail(outcome)), remedy=answer.get("remedy", "")
            )
        first, *others = answer["readings"]
        return tuple(_reading(r) for r in (first, *others))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MeasureError(
            f"the program's answer cannot be read: {outcome.stdout[:200]!r}"
        ) from error


def _reading(raw: dict[str, Any]) -> Reading:
    return Reading(
        metric=raw["metric"],
        unit=raw["unit"],
        values=tuple(float(v) for v in raw["values"]),
        levels=_pairs(raw.get("levels", {})),
        notes=_pairs(raw.get("notes", {})),
    )


def _pairs(raw: dict[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in raw.items())


def _tail(outcome: Outcome, lines: int = 3) -> str:
    words: Sequence[str] = outcome.stderr.decode(errors="replace").strip().splitlines()
    return " / ".join(words[-lines:])
