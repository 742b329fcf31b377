"""What a run measures: comparisons of a case in every environment; with one, the case itself."""

import math
from collections.abc import Iterator, Mapping, Sequence

from flowos import engine
from flowos._dataclasses import dataclass, replace
from flowos.engine import now
from flowos.model import (
    EQUAL_MARGIN,
    Argv,
    Case,
    Facts,
    FlowosError,
    LaunchFailed,
    MeasureError,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.operations.measure._cases import Offered, chosen, offered
from flowos.operations.measure._environments import PreparedEnvironment
from flowos.operations.measure._sampler import SampleAnswer
from flowos.operations.measure._time import overhead_seconds
from flowos.operations.measure._words import words_in
from flowos.probes import ENV, Build, ComparedCase, Probe, Program, entered, in_environment, timed

_WITHOUT_BASE = Unmeasured(reason="it cannot be measured in the base: nothing to compare with")

RefusedCase = tuple[Case, Unmeasured]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCase:
    """A case in one environment, as in its samples, and the command line that runs it there."""

    place: PreparedEnvironment
    compared: ComparedCase
    case: Case
    program: Program
    words: Argv

    def read(self) -> SampleAnswer:
        """Run it once and read its answer; a probe of start-up is started several times."""
        took, outcome = self._run()
        times = [took]
        while outcome.ok and len(times) < self.program.starts:
            took, outcome = self._run()
            times.append(took)
        answer = self.read_of(outcome)
        if isinstance(answer, Unmeasured) or not self.program.starts:
            return answer
        return timed(times), outcome

    def read_of(self, outcome: Outcome) -> SampleAnswer:
        """Read the program's answer."""
        readings = self.compared.probe.read(self.compared.case, outcome)
        return readings if isinstance(readings, Unmeasured) else (readings, outcome)

    def _run(self) -> tuple[float, Outcome]:
        began = now()
        outcome = self.place.run(self.words, self.program)
        return now() - began, outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A case in one or more environments, or some cases in one, the base first.

    seconds: approximate time of one of them. axis: where they differ. interleaved: do its programs
    run side by side, one working at a time?
    """

    entries: tuple[ComparisonCase, ...]
    seconds: float
    axis: str = ENV
    margin: float = EQUAL_MARGIN
    interleaved: bool = False

    @property
    def probe(self) -> Probe:
        return self.entries[0].compared.probe


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """The comparisons in the order of the table of probes, and what cannot be measured."""

    comparisons: tuple[Comparison, ...]
    unmeasured: tuple[RefusedCase, ...]


def answers_of(entries: Sequence[ComparisonCase], seed: str) -> list[SampleAnswer]:
    """Run the cases and read their answers; several run in turns, in an order drawn from `seed`."""
    if len(entries) == 1:
        return [entries[0].read()]
    prepared = [entry.place.prepared(entry.words, entry.program) for entry in entries]
    return list(map(_answer, entries, engine.run_interleaved(prepared, seed)))


def _answer(entry: ComparisonCase, outcome: Outcome | LaunchFailed) -> SampleAnswer:
    try:
        if isinstance(outcome, LaunchFailed):
            raise outcome
        return entry.read_of(entry.place.started(outcome))
    except FlowosError as error:
        return Unmeasured(reason=str(error))


def offers_in(
    places: Sequence[PreparedEnvironment], node: Facts, request: MeasurementRequest
) -> dict[Probe, list[Offered]]:
    """What each of the requested probes measures in each environment."""
    return {
        probe: [
            _offered(probe, place.for_probe(probe), node, request, len(places)) for place in places
        ]
        for probe in chosen(request, len(places))
    }


def runs_by_own_python(node: Facts, request: MeasurementRequest, environments: int) -> bool:
    """Is one of the cases for a node with these facts run by the Python of its environment?"""
    probes = (probe for probe in chosen(request, environments) if probe.info.own_python)
    found = (offered(probe, node, request, environments) for probe in probes)
    return any(cases and not isinstance(cases, Unmeasured) for cases in found)


def builds_of(
    places: Sequence[PreparedEnvironment], offers: Mapping[Probe, Sequence[Offered]]
) -> Iterator[Build]:
    """The builds for this node's compilers."""
    for found in offers.values():
        for place, has in zip(places, found, strict=True):
            ours = place.binary == "same" or place.env.image is None
            for compared in has if ours and not isinstance(has, Unmeasured) else ():
                if build := compared.probe.program(compared.case).build:
                    yield build


def plan_of(
    places: Sequence[PreparedEnvironment],
    offers: Mapping[Probe, Sequence[Offered]],
    node: Facts,
    cache: BinaryCache,
    margin: float | None = None,
) -> MeasurementPlan:
    """Plan all that can be measured, with the command lines to run.

    margin: instead of the probes' own.
    """
    comparisons: list[Comparison] = []
    unmeasured: list[RefusedCase] = []
    for probe, (base, *others) in offers.items():
        ours = [place.for_probe(probe) for place in places]
        if isinstance(base, Unmeasured):
            unmeasured.append((Case(probe.name), base))
            continue
        for shown in (compared.shown for compared in base):
            each = [_of_case(shown, has) for has in (base, *others)]
            entries = tuple(_entries(shown, ours, each, cache, unmeasured))
            if entries[:1] and entries[0].place is not ours[0]:
                unmeasured += [(entry.case, _WITHOUT_BASE) for entry in entries]
            elif len(entries) >= min(2, len(places)) and _has_entry_point_effect(entries):
                planned = _comparison(entries, len(places), node)
                comparisons.append(planned if margin is None else replace(planned, margin=margin))
    return MeasurementPlan(
        comparisons=_versus(comparisons) if len(places) == 1 else tuple(comparisons),
        unmeasured=tuple(unmeasured),
    )


def _versus(alone: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Cases of one environment, together where their probe compares them with the first."""
    found: list[Comparison] = []
    for each in alone:
        if found and each.probe.info.versus and each.probe is found[-1].probe:
            entries = (*found[-1].entries, *each.entries)
            found[-1] = replace(found[-1], entries=entries, axis=each.probe.info.versus)
        else:
            found.append(each)
    return tuple(found)


def _offered(
    probe: Probe,
    place: PreparedEnvironment,
    node: Facts,
    request: MeasurementRequest,
    environments: int,
) -> Offered:
    """The probe's cases in this environment."""
    if place.binary == "same" or place.env.image is None:
        return offered(probe, node, request, environments)
    if isinstance(place.facts, Unmeasured):
        return place.facts
    found = offered(probe, _like_the_node(place.facts, node), request, environments)
    if isinstance(found, Unmeasured) and found.remedy:
        return replace(found, remedy=f"in {place.label}: {found.remedy}")
    return found


def _like_the_node(own: Facts, node: Facts) -> Facts:
    """An environment's own software; the machine, and what starts MPI ranks, is one for all."""
    mpiruns = {mpi.family: mpi.mpirun for mpi in node.mpis}
    return replace(
        node,
        compilers=own.compilers,
        mpis=tuple(
            replace(mpi, mpirun=mpiruns[mpi.family]) for mpi in own.mpis if mpi.family in mpiruns
        ),
        blas=own.blas,
        tools=own.tools,
    )


def _of_case(shown: Case, has: Offered) -> ComparedCase | Unmeasured | None:
    """This case in an environment; None if it has none."""
    if isinstance(has, Unmeasured):
        return has
    return next((compared for compared in has if compared.shown == shown), None)


def _entries(
    shown: Case,
    places: Sequence[PreparedEnvironment],
    found: Sequence[ComparedCase | Unmeasured | None],
    cache: BinaryCache,
    unmeasured: list[RefusedCase],
) -> Iterator[ComparisonCase]:
    for place, has in zip(places, found, strict=True):
        case = in_environment(shown, place.label) if len(places) > 1 else shown
        try:
            if has is None:
                unmeasured.append((case, Unmeasured(reason=f"{place.label} does not have this")))
            elif isinstance(has, Unmeasured):
                unmeasured.append((case, has))
            else:
                yield _entry(has, case, place, cache)
        except (FlowosError, OSError) as error:
            unmeasured.append((case, Unmeasured(reason=str(error))))


def _entry(
    of: ComparedCase, case: Case, place: PreparedEnvironment, cache: BinaryCache
) -> ComparisonCase:
    """Raises MeasureError if the case cannot be run, or not be timed, in this environment."""
    image = place.env.image
    entry_point = image.config.entrypoint if image else ()
    if of.way == "run" and image and not entry_point:
        raise MeasureError(f"{place.label}: the image names no entry point, so run is exec")
    program = of.probe.program(of.case)
    if program.starts and not place.node.is_here:
        raise MeasureError(
            f"a start on node {place.node.name} is timed from here, with its cluster's part in it: "
            "measure in a job there, without --pool"
        )
    words = entered(of.way, words_in(place, program, cache), entry_point)
    return ComparisonCase(place=place, compared=of, case=case, program=program, words=words)


def _has_entry_point_effect(entries: Sequence[ComparisonCase]) -> bool:
    """Entering by run differs from exec only if an image has an entry point."""
    return any(entry.compared.way != "run" or entry.place.env.image for entry in entries)


def _comparison(entries: tuple[ComparisonCase, ...], environments: int, node: Facts) -> Comparison:
    first = entries[0].compared
    return Comparison(
        entries=entries,
        seconds=first.probe.seconds(first.case) + overhead_seconds(environments),
        margin=first.probe.info.margin,
        interleaved=environments > 1 and _side_by_side(entries, node),
    )


def _side_by_side(entries: Sequence[ComparisonCase], node: Facts) -> bool:
    """Turns are given by a socket of this machine: ranks on other nodes do not see it."""
    here = all(entry.place.node.is_here for entry in entries)
    return here and fit_together([entry.program for entry in entries], node)


def fit_together(programs: Sequence[Program], node: Facts) -> bool:
    """Can they run side by side, in less than half of the memory?"""
    has = node.usable_memory_bytes or math.inf
    fit = sum(program.memory_bytes for program in programs) <= has / 2
    return fit and all(program.takes_turns for program in programs)
