"""What a measurement will do, found before anything is measured; `--dry-run` shows it."""

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from flowos.model import Case, Design, Facts, Unmeasured, UsageError, Wanted
from flowos.probes import Build, Probe, Program, probes_for

_OVERHEAD_SECONDS = 0.2
"""About what starting a case and looking at the machine costs beside the case itself."""

SLACK, MIN_SHARE = 1.1, 0.6
"""A case may take so much of what was thought; with less of its time than this, none is begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """One probe's share of a run."""

    probe: Probe
    design: Design

    @property
    def once_seconds(self) -> float:
        """About what each case once takes."""
        return sum(self.design.seconds.values())

    @property
    def round_seconds(self) -> float:
        """About what a whole round takes."""
        return self.design.turns * self.once_seconds

    @property
    def seconds(self) -> float:
        """About what its least rounds take."""
        return self.design.min_rounds * self.round_seconds

    @property
    def as_often_as_time_allows(self) -> "ProbePlan":
        """The same, with rounds until the time is out where cases are compared: more tell more."""
        endless = sys.maxsize if self.design.turns > 1 else self.design.min_rounds
        return replace(self, design=replace(self.design, min_rounds=endless))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """The parts in the order in which they are measured, and what cannot be measured."""

    parts: tuple[ProbePlan, ...]
    unmeasured: tuple[tuple[Case, Unmeasured], ...]

    @property
    def programs(self) -> tuple[tuple[Case, Program], ...]:
        return tuple((c, p.probe.program(c)) for p in self.parts for c in p.design.cases)


def seconds_for(parts: Sequence[ProbePlan], left: float) -> float:
    """How long the first of these parts may take, with so many seconds left for all of them.

    It has its share by what its rounds take, and first of all a whole round, as no factor is told
    from less, if the others can have one too; if not, they keep what each of their cases takes
    once. What its own cases take once it has, if most of it is left.
    """
    first, later = parts[0], parts[1:]
    once, whole_round = SLACK * first.once_seconds, SLACK * first.round_seconds
    least = once if left >= MIN_SHARE * once else left
    share = left * first.seconds / (sum(part.seconds for part in parts) or 1.0)
    without_rounds = left - SLACK * sum(part.round_seconds for part in later)
    if without_rounds >= whole_round:
        return max(min(max(share, whole_round), without_rounds), least)
    return max(min(share, left - once_each(later)), least)


def once_each(parts: Iterable[ProbePlan]) -> float:
    """About what each case of these parts takes once, in seconds."""
    return sum(part.once_seconds for part in parts)


def work(facts: Facts, wanted: Wanted) -> MeasurementPlan:
    """What will be measured on this node, and what cannot be. UsageError for an unknown probe."""
    parts: list[ProbePlan] = []
    unmeasured: list[tuple[Case, Unmeasured]] = []
    for probe in chosen(wanted.probes):
        cases = probe.cases(facts, wanted)
        if isinstance(cases, Unmeasured):
            unmeasured.append((Case(probe.name), cases))
            continue
        seconds = {case: probe.seconds(case) + _OVERHEAD_SECONDS for case in cases}
        design = Design(cases=cases, seconds=seconds, min_rounds=probe.info.rounds)
        parts.append(ProbePlan(probe=probe, design=design))
    return MeasurementPlan(parts=tuple(parts), unmeasured=tuple(unmeasured))


def chosen(names: Sequence[str], environments: int = 1) -> tuple[Probe, ...]:
    """The probes of these names in the table's order; all of them for no name. UsageError."""
    known = {probe.name: probe for probe in probes_for(environments)}
    for name in (name for name in names if name not in known):
        listed = ", ".join(known)
        if environments > 1:
            raise UsageError(f"probe {name!r} is not compared between environments; {listed} are")
        raise UsageError(f"no probe is called {name!r}; the probes are {listed}")
    return tuple(known[n] for n in known if n in names or not names)


def described(todo: MeasurementPlan) -> list[dict[str, object]]:
    """Each case with its command lines, as plain JSON values."""
    planned: list[dict[str, object]] = [
        {"case": case.label, "commands": list(_commands(program))}
        for case, program in todo.programs
    ]
    for case, why in todo.unmeasured:
        planned.append({"case": case.label, "unmeasured": why.reason, "remedy": why.remedy})
    return planned


def _commands(program: Program) -> Iterator[str]:
    words = program.argv
    if program.build:
        yield _compile(program.build)
        words = (program.build.key, *words)
    if program.mpi_family:
        words = (program.starter, "-n", str(program.ranks), *words)
    yield " ".join((*(f"{n}={shlex.quote(v)}" for n, v in program.variables), shlex.join(words)))


def _compile(build: Build) -> str:
    return shlex.join(
        (
            build.compiler,
            *build.flags,
            *build.include_flags,
            build.source,
            *build.also,
            "-o",
            build.key,
            *build.libraries,
        )
    )
