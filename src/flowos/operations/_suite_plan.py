"""What of a suite can be measured here, by which runs, and about how long each takes."""

from collections.abc import Iterator, Mapping, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.model import (
    Case,
    Design,
    Effort,
    Facts,
    FigurePart,
    MeasurementRequest,
    PaperFigure,
    PaperSuite,
    Run,
    SuiteStep,
    Unmeasured,
    UsageError,
    did_you_mean,
)
from flowos.operations._suite_runs import cases_left
from flowos.operations.measure import (
    budget_seconds,
    offered,
    overhead_seconds,
    round_seconds,
)
from flowos.probes import Probe, probe_named, probes_for
from flowos.report import may_show

NOT_HERE = Unmeasured(reason="no probe here measures it yet")

_NO_CASES = Unmeasured(reason="it has nothing to measure on this machine")
_NO_CASE = Unmeasured(
    reason="none of its cases is measured with this effort", remedy="leave out --quick"
)

LIMIT_SECONDS: dict[Effort, float] = {"quick": 720.0, "normal": 3600.0, "full": 4 * 3600.0}
"""Of a whole suite between environments, by default; building programs apart."""
SLACK = 1.5
"""A busy machine takes longer than was estimated."""
FIRST_LOOK, LOOKS = 4, 4
"""Rounds after which environments are first compared, and how many times as many may be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A probe of a suite, measured in a run of its own with those that bound its numbers.

    figures: their numbers. cases: in each environment. seconds: about how long it takes. limit: the
    seconds that it is given; None for those of its effort, which a busy machine may need.
    nodes: between how many it is measured. done: the run that measured it, or "". measured: labels
    of cases that earlier runs measured, until their time was out; seconds are of the others.
    """

    probe: str
    probes: tuple[str, ...]
    cases: tuple[Case, ...]
    seconds: float
    figures: tuple[str, ...] = ()
    limit: float | None = None
    nodes: int = 1
    done: str = ""
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFigure:
    """A figure, the probes that are measured for it, and what cannot be.

    lacking: (probe, or compiler, or "", why).
    """

    figure: PaperFigure
    probes: tuple[str, ...] = ()
    lacking: tuple[tuple[str, Unmeasured], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What of a suite is measured here."""

    suite: PaperSuite
    figures: tuple[PlannedFigure, ...]
    steps: tuple[PlannedStep, ...]

    @property
    def left(self) -> tuple[PlannedStep, ...]:
        return tuple(step for step in self.steps if not step.done)

    @property
    def seconds(self) -> float:
        """Of what is left."""
        return sum(step.seconds for step in self.left)


def figures_of(suite: PaperSuite, numbers: Sequence[str]) -> tuple[PaperFigure, ...]:
    """These figures, in the paper's order; all for no number. Raises UsageError for an unknown."""
    known = {figure.number.lower(): figure for figure in suite.figures}
    asked = [number.lower().removeprefix("figure ").strip() for number in numbers]
    for given, number in zip(numbers, asked, strict=True):
        if number not in known:
            listed = ", ".join(figure.number for figure in suite.figures)
            near = did_you_mean(number, known)
            raise UsageError(f"suite {suite.name} has no figure {given!r}; it has {listed}{near}")
    return tuple(f for number, f in known.items() if not asked or number in asked)


def plan_suite(
    suite: PaperSuite,
    figures: Sequence[PaperFigure],
    facts: Facts,
    request: MeasurementRequest,
    done: Mapping[str, Run],
) -> SuitePlan:
    """done: probe -> the run that measured it, or some of its cases."""
    names = dict.fromkeys(part.probe for figure in figures for part in figure.parts)
    found = {name: _step(name, facts, request) for name in names}
    planned = tuple(_planned(figure, found, facts) for figure in figures)
    shown_in = {name: [p.figure.number for p in planned if name in p.probes] for name in names}
    return SuitePlan(
        suite=suite,
        figures=planned,
        steps=tuple(
            _left_of(replace(step, figures=tuple(shown_in[name])), done.get(name), facts, request)
            for name, step in found.items()
            if isinstance(step, PlannedStep) and shown_in[name]
        ),
    )


def _left_of(
    step: PlannedStep, done: Run | None, facts: Facts, request: MeasurementRequest
) -> PlannedStep:
    """The step, with what a run had measured of it until its time was out."""
    if done is None:
        return step
    left = cases_left(done, step.cases)
    if not left:
        return replace(step, done=done.id)
    measured = tuple(case.label for case in step.cases if case not in left)
    part = SuiteStep(of="", suite="", probe=step.probe, measured=measured)
    others = _step(step.probe, facts, replace(request, suite=part))
    seconds = others.seconds if isinstance(others, PlannedStep) else step.seconds
    return replace(step, seconds=seconds, measured=measured)


def _planned(
    figure: PaperFigure, found: dict[str, PlannedStep | Unmeasured], facts: Facts
) -> PlannedFigure:
    whole = Unmeasured(reason=figure.lacking) if figure.lacking else _sockets_lacking(figure, facts)
    if whole is not None:
        return PlannedFigure(figure=figure, lacking=(("", whole),))
    each = {part.probe: _of_part(part, found[part.probe]) for part in figure.parts}
    return PlannedFigure(
        figure=figure,
        probes=tuple(name for name, why in each.items() if why is None),
        lacking=(
            *((name, why) for name, why in each.items() if why is not None),
            *_compilers_lacking(figure, facts),
        ),
    )


def _compilers_lacking(figure: PaperFigure, facts: Facts) -> Iterator[tuple[str, Unmeasured]]:
    """Compilers of the figure that are not here, as the others alone are compared."""
    here = {compiler.family for compiler in facts.compilers if compiler.language == "c"}
    for family, remedy in figure.compilers:
        if family not in here:
            yield family, Unmeasured(reason="the paper has this compiler", remedy=remedy)


def _of_part(part: FigurePart, found: PlannedStep | Unmeasured) -> Unmeasured | None:
    """Why this part of a figure has no case; None if it has."""
    if isinstance(found, Unmeasured):
        return found
    return None if any(may_show(part, case) for case in found.cases) else _NO_CASE


def in_time(plan: SuitePlan, request: MeasurementRequest, seconds: float | None) -> SuitePlan:
    """The plan with `seconds` shared out to what is left, by what each step needs.

    Without: in one environment a step ends once it has its rounds; between several it goes on
    until it is decided, and has a part of the limit of its effort.
    """
    if seconds is None and len(request.environments) < 2:
        usual = budget_seconds(request.effort, 1)
        enough = (replace(s, limit=_more_than(usual, s.seconds)) for s in plan.steps)
        return replace(plan, steps=tuple(enough))
    total = min(LOOKS * plan.seconds, LIMIT_SECONDS[request.effort]) if seconds is None else seconds
    factor = total / plan.seconds if plan.seconds else 1.0
    return replace(
        plan,
        steps=tuple(
            s if s.done else replace(s, seconds=factor * s.seconds, limit=factor * s.seconds)
            for s in plan.steps
        ),
    )


def _more_than(usual: float, needed: float) -> float | None:
    """The time for a step that needs most of the usual time, or more; None if that is enough."""
    return SLACK * needed if SLACK * needed > usual else None


def _sockets_lacking(figure: PaperFigure, facts: Facts) -> Unmeasured | None:
    """Why a figure on more processors than this machine has is not shown."""
    here = len({cpu.socket for cpu in facts.usable}) or 1
    if here >= figure.sockets:
        return None
    return Unmeasured(reason=f"it needs {figure.sockets} sockets, and {here} can be used here")


def _step(name: str, facts: Facts, request: MeasurementRequest) -> PlannedStep | Unmeasured:
    """Some probes measure more where they are named, as a suite names them."""
    probe, count = probe_named(name), len(request.environments) or 1
    if probe is None:
        return NOT_HERE
    nodes = request.nodes if probe.info.between_nodes else 1
    request = replace(request, probes=(name,), nodes=nodes)
    if probe not in probes_for(count):
        several = "it is not compared between environments"
        alone = "it is measured between environments only"
        return Unmeasured(
            reason=several if count > 1 else alone, remedy="" if count > 1 else "give --env IMAGE"
        )
    cases = offered(probe, facts, request, count)
    if isinstance(cases, Unmeasured):
        return cases
    if not cases:
        return _NO_CASES
    ceilings = () if count > 1 else tuple(dict.fromkeys(_ceilings(probe, facts, request)))
    needed = _seconds(probe, facts, request, count)
    needed += sum(_seconds(each, facts, request, count) for each in ceilings)
    return PlannedStep(
        probe=name,
        probes=(*(each.name for each in ceilings), name),
        cases=tuple(compared.shown for compared in cases),
        seconds=needed,
        nodes=nodes,
    )


def _ceilings(probe: Probe, facts: Facts, request: MeasurementRequest) -> Iterator[Probe]:
    """The other probes that bound its numbers, with those that bound theirs."""
    cases = offered(probe, facts, request)
    for each in cases if isinstance(cases, tuple) else ():
        bound = probe.ceiling(each.case)
        other = probe_named(bound.probe) if bound else None
        if other is not None and other is not probe and other in probes_for():
            yield from _ceilings(other, facts, request)
            yield other


def _seconds(probe: Probe, facts: Facts, request: MeasurementRequest, environments: int) -> float:
    """About how long its conclusions take."""
    found = offered(probe, facts, request, environments)
    if isinstance(found, Unmeasured):
        return 0.0
    each = {c.case: probe.seconds(c.case) + overhead_seconds(environments) for c in found}
    if environments > 1:
        return environments * 2 * FIRST_LOOK * sum(each.values())
    design = Design(cases=tuple(each), seconds=each, min_rounds=probe.rounds(each))
    return design.min_rounds * round_seconds(design)
