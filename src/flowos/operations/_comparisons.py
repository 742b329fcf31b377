"""What is compared between environments, group by group, and by which words it is run in each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flowos import engine
from flowos.model import (
    Argv,
    Case,
    Design,
    Facts,
    FlowosError,
    LaunchFailed,
    MeasureError,
    Outcome,
    Sample,
    Unmeasured,
    Wanted,
)
from flowos.operations._binary_cache import BinaryCache
from flowos.operations._measurement_plan import chosen
from flowos.operations._mpi_inside import check_mpi_program
from flowos.operations._prepared_environments import PreparedEnvironment
from flowos.operations._sampling import Answer
from flowos.probes import (
    ENV,
    Build,
    ComparedCase,
    Probe,
    Program,
    entered,
    in_environment,
    timed,
)

_OVERHEAD_SECONDS = 0.5
"""About what entering an environment and looking at the machine costs beside the case itself."""

_WITHOUT_BASE = Unmeasured(reason="it cannot be measured in the base: nothing to compare with")

Found = tuple[Case, Unmeasured]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCase:
    """A case in one environment: the program, and the words by which it is run there."""

    place: PreparedEnvironment
    compared: ComparedCase
    program: Program
    words: Argv

    @property
    def case(self) -> Case:
        return in_environment(self.compared.shown, self.place.label)

    def read(self) -> Answer:
        """Run it once and read its answer; where starting is timed, start it that often."""
        took, outcome = self._run()
        times = [took]
        while outcome.ok and len(times) < self.program.starts:
            took, outcome = self._run()
            times.append(took)
        answer = self.read_of(outcome)
        if isinstance(answer, Unmeasured) or not self.program.starts:
            return answer
        return timed(times), outcome

    def read_of(self, outcome: Outcome) -> Answer:
        """What the program answered."""
        readings = self.compared.probe.read(self.compared.case, outcome)
        return readings if isinstance(readings, Unmeasured) else (readings, outcome)

    def _run(self) -> tuple[float, Outcome]:
        began = engine.now()
        outcome = self.place.run(self.words, self.program)
        return engine.now() - began, outcome


def answers_of(entries: Sequence[ComparisonCase], seed: str) -> list[Answer]:
    """What each answers; several run side by side, and work in turns whose order `seed` draws."""
    if len(entries) == 1:
        return [entries[0].read()]
    prepared = [entry.place.prepared(entry.words, entry.program) for entry in entries]
    return list(map(_answer, entries, engine.run_interleaved(prepared, seed)))


def _answer(entry: ComparisonCase, outcome: Outcome | LaunchFailed) -> Answer:
    try:
        if isinstance(outcome, LaunchFailed):
            raise outcome
        return entry.read_of(entry.place.started(outcome))
    except FlowosError as error:
        return Unmeasured(reason=str(error))


@dataclass(slots=True, kw_only=True)
class Comparison:
    """One comparison: a case in all environments, what was seen of it, and what is still open.

    in_turns: do its programs run side by side, and work in turns?
    """

    design: Design
    entries: Mapping[Case, ComparisonCase]
    in_turns: bool = False
    seen: list[Sample] = field(default_factory=list)
    rounds: int = 0
    spent_seconds: float = 0.0

    @property
    def probe(self) -> Probe:
        return next(iter(self.entries.values())).compared.probe

    @property
    def deciding(self) -> list[Sample]:
        """The samples that a verdict is wanted of."""
        return [s for s in self.seen if self.probe.decides(s)]


def groups_of(
    places: Sequence[PreparedEnvironment], node: Facts, wanted: Wanted, shelf: BinaryCache
) -> tuple[tuple[Comparison, ...], tuple[Found, ...]]:
    """All comparisons that can be made, and what cannot be measured with the reason."""
    groups: list[Comparison] = []
    unmeasured: list[Found] = []
    for probe in chosen(wanted.probes, len(places)):
        found = _in_each(probe, places, node, wanted)
        base = found[0]
        if isinstance(base, Unmeasured):
            unmeasured.append((Case(probe.name), base))
            continue
        for shown in base:
            entries = list(_entries(shown, places, found, shelf, unmeasured))
            if entries[:1] and entries[0].place is not places[0]:
                unmeasured += [(entry.case, _WITHOUT_BASE) for entry in entries]
            elif len(entries) > 1 and _tells(entries):
                groups.append(_group(entries, places[0].label, node))
    return tuple(groups), tuple(unmeasured)


def _tells(entries: Sequence[ComparisonCase]) -> bool:
    """Entering by run is something of its own only where an image has an entry point."""
    return any(entry.compared.way != "run" or entry.place.env.image for entry in entries)


_Has = dict[Case, ComparedCase] | Unmeasured


def _in_each(
    probe: Probe, places: Sequence[PreparedEnvironment], node: Facts, wanted: Wanted
) -> list[_Has]:
    """What each environment has of this probe, by how it is shown."""
    if wanted.binary == "same":
        return [_by_shown(probe.compared(node, wanted))] * len(places)
    return [
        place.facts
        if isinstance(place.facts, Unmeasured)
        else _by_shown(probe.compared(_like_the_node(place.facts, node), wanted))
        for place in places
    ]


def _like_the_node(own: Facts, node: Facts) -> Facts:
    """An environment's own software; the machine, and what starts MPI ranks, is one for all."""
    starters = {mpi.family: mpi.starter for mpi in node.mpis}
    return replace(
        node,
        compilers=own.compilers,
        mpis=tuple(
            replace(mpi, starter=starters[mpi.family]) for mpi in own.mpis if mpi.family in starters
        ),
        blas=own.blas,
        tools=own.tools,
    )


def _by_shown(found: tuple[ComparedCase, ...] | Unmeasured) -> _Has:
    return found if isinstance(found, Unmeasured) else {c.shown: c for c in found}


def _entries(
    shown: Case,
    places: Sequence[PreparedEnvironment],
    found: Sequence[_Has],
    shelf: BinaryCache,
    unmeasured: list[Found],
) -> Iterator[ComparisonCase]:
    for place, has in zip(places, found, strict=True):
        case = in_environment(shown, place.label)
        try:
            if isinstance(has, Unmeasured):
                unmeasured.append((case, has))
            elif shown not in has:
                unmeasured.append((case, Unmeasured(reason=f"{place.label} does not have this")))
            else:
                yield _entry(has[shown], place, shelf)
        except FlowosError as error:
            unmeasured.append((case, Unmeasured(reason=str(error))))


def _group(entries: Sequence[ComparisonCase], base: str, node: Facts) -> Comparison:
    first = entries[0].compared
    seconds = first.probe.seconds(first.case) + _OVERHEAD_SECONDS
    by_case = {entry.case: entry for entry in entries}
    return Comparison(
        design=Design(
            cases=tuple(by_case),
            axis=ENV,
            base=base,
            margin=first.probe.info.margin,
            seconds=dict.fromkeys(by_case, seconds),
        ),
        entries=by_case,
        in_turns=fit_together([entry.program for entry in entries], node),
    )


def fit_together(programs: Sequence[Program], node: Facts) -> bool:
    """Can they run side by side, in less than half of the memory?"""
    has = min(b for b in (node.memory_bytes, node.memory_limit_bytes, math.inf) if b)
    fit = sum(program.memory_bytes for program in programs) <= has / 2
    return fit and all(program.takes_turns for program in programs)


def _entry(of: ComparedCase, place: PreparedEnvironment, shelf: BinaryCache) -> ComparisonCase:
    """MeasureError: it cannot be run in this environment."""
    image = place.env.image
    entry_point = image.config.entrypoint if image else ()
    if of.way == "run" and image and not entry_point:
        raise MeasureError(f"{place.label}: the image names no entry point, so run is exec")
    program = of.probe.program(of.case)
    words = entered(of.way, words_in(place, program, shelf), entry_point)
    return ComparisonCase(place=place, compared=of, program=program, words=words)


def words_in(place: PreparedEnvironment, program: Program, shelf: BinaryCache) -> Argv:
    """The command line of a program there, where it or what it is made of lies now. FlowosError."""
    if program.mpi_family:
        return _mpi_words(program, place, shelf)
    if place.binary == "own":
        if program.build is None:
            return program.argv
        return (str(_own_binary(program.build, place, shelf)), *program.argv)
    opens = tuple(map(Path, program.opens))
    tool = shelf.built(program.build) if program.build else Path(program.argv[0])
    made = shelf.bundled(tool, _with_siblings(opens))
    words = program.argv if program.build else program.argv[1:]
    inside = {str(file): str(made.holds(file)) for file in opens}
    return (*made.words, *(inside.get(word, word) for word in words))


def _with_siblings(libraries: tuple[Path, ...]) -> tuple[Path, ...]:
    """MKL opens parts of itself by name, which no listing of libraries shows."""
    parts = (
        part
        for library in libraries
        if library.name.startswith("libmkl_rt")
        for pattern in ("libmkl_*.so*", "libiomp5.so*")
        for part in sorted(library.parent.glob(pattern))
    )
    return tuple(dict.fromkeys((*libraries, *parts)))


def _mpi_words(program: Program, place: PreparedEnvironment, shelf: BinaryCache) -> Argv:
    """An MPI program takes the environment's MPI in any case."""
    assert program.build is not None
    if place.binary == "own":
        binary = _own_binary(program.build, place, shelf)
    else:
        binary = shelf.alone(shelf.built(program.build))
    check_mpi_program(program, binary, place)
    return (str(binary), *program.argv)


def _own_binary(build: Build, place: PreparedEnvironment, shelf: BinaryCache) -> Path:
    """Compiled by the environment's own compiler; nothing is taken from another image's cache."""
    if place.env.image is None:
        return shelf.alone(shelf.built(build))
    made = place.folder / build.key
    source = place.folder / "programs" / build.source
    words = (build.compiler, *build.flags, str(source), "-o", str(made), *build.libraries)
    if not made.exists():
        outcome = place.run(words, Program(argv=()))
        if not made.exists():
            said = outcome.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise MeasureError(
                f"{place.label}: {build.source} cannot be compiled: {' '.join(said)}"
            )
    return made
