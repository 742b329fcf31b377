"""Prepares a run: environments are made ready, and the cases to run in them planned."""

import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass, replace
from flowos.engine import Node
from flowos.model import (
    Environment,
    Facts,
    FlowosError,
    MeasurementRequest,
    OnProgress,
    Outcome,
    Progress,
    Tried,
    Unmeasured,
    counted,
)
from flowos.operations._scratch import OWN_STORAGE, Scratch, scratch_on
from flowos.operations.environment import environment
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.operations.measure._bundle import Bundle
from flowos.operations.measure._cases import (
    chosen,
    commands_of,
    refused,
    with_folders,
    with_variables,
)
from flowos.operations.measure._environments import (
    PreparedEnvironment,
    bare_on,
    places,
    with_own_software,
)
from flowos.operations.measure._plan import (
    ComparisonCase,
    MeasurementPlan,
    builds_of,
    offers_in,
    plan_of,
    runs_by_own_python,
)
from flowos.operations.measure._trials import with_trials
from flowos.operations.measure._words import words_in
from flowos.probes import Build, Program, allowed_everywhere, best_compiler, built_by, state


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRun:
    """Ready environments, and what is to be run in them.

    spin: runs the program that checks the machine around a sample; None without one.
    """

    places: tuple[PreparedEnvironment, ...]
    plan: MeasurementPlan
    scratch: Scratch
    spin: Callable[[Program], Outcome] | None = None


def check(request: MeasurementRequest) -> tuple[tuple[str, Environment], ...]:
    """Its environments. Raises UsageError for an unknown probe, EnvironmentRefused for those."""
    words = request.environments or ("bare",)
    chosen(request, len(words))
    return tuple((word, environment(word)) for word in words)


@contextmanager
def ready_run(
    request: MeasurementRequest,
    facts: Facts,
    node: Node,
    asked: Sequence[tuple[str, Environment]],
    on_progress: OnProgress,
    own_storage: PurePath = OWN_STORAGE,
) -> Iterator[ReadyRun]:
    """Ready until the end of the `with`.

    own_storage: of each node, for what no image sees: several environments have the usual one. A
    single environment runs programs compiled for it; for a comparison `request.binary` decides.
    Raises EnvironmentRefused if an environment cannot be made ready.
    """
    several = len(asked) > 1
    request = request if several else replace(request, binary="own")
    with (
        scratch_on(node, request.scratch) as scratch,
        tempfile.TemporaryDirectory(
            prefix="measure-", dir=node.folder(), ignore_cleanup_errors=True
        ) as name,
    ):
        bare = bare_on(node, facts, Path(name), Path(scratch.path), request.nodes)
        bare = bare if several else replace(bare, own_storage=own_storage)
        cache = BinaryCache(bare)
        if several:
            on_progress(Progress(doing="making the environments ready"))
        tries = _tries(facts, cache) if several else None
        with places(asked, bare, request, tries) as made:
            if several:
                on_progress(Progress(doing="putting the programs into them"))
                made = with_trials(chosen(request, len(made)), made, facts, cache)
            everywhere = _with_tried(facts, allowed_everywhere(p.entered for p in made))
            if several and runs_by_own_python(everywhere, request, len(made)):
                on_progress(Progress(doing="looking up what the environments have"))
                made = tuple(with_own_software(place, request) for place in made)
            offers = offers_in(made, everywhere, request)
            look = state.program(facts)
            builds = {build.key: build for build in (*builds_of(made, offers), *_build_of(look))}
            if builds and not several:
                on_progress(Progress(doing=f"building {counted(len(builds), 'program')}"))
            cache.build_ahead(builds.values(), on_progress)
            plan = plan_of(made, offers, everywhere, cache, request.margin)
            spin = _spin(bare, look, cache)
            yield ReadyRun(places=made, plan=plan, scratch=scratch, spin=spin)


def _tries(facts: Facts, cache: BinaryCache) -> Bundle | None:
    """The program that tries what the kernel allows; None without a compiler."""
    compiler = best_compiler(facts)
    if compiler is None:
        return None
    return cache.bundled(cache.built(built_by("tries.c", compiler, ("-O2",))))


def _with_tried(facts: Facts, tried: Sequence[Tried]) -> Facts:
    """The node's facts, restricted to what all environments allow."""
    merged = {t.name: t for t in (*facts.tried, *tried)}
    return replace(facts, tried=tuple(merged.values()))


def _build_of(program: Program | Unmeasured) -> tuple[Build, ...]:
    return (program.build,) if isinstance(program, Program) and program.build else ()


def _spin(
    bare: PreparedEnvironment, program: Program | Unmeasured, cache: BinaryCache
) -> Callable[[Program], Outcome] | None:
    if isinstance(program, Unmeasured):
        return None
    try:
        words = words_in(bare, program, cache)
    except (FlowosError, OSError):
        return None
    return lambda limited: bare.run(words, limited)


def described_in(
    request: MeasurementRequest, facts: Facts, node: Node, asked: Sequence[tuple[str, Environment]]
) -> list[dict[str, object]]:
    """Each case with its complete command line, as plain JSON values.

    That of several nodes is made by their cluster, and what is shown is without it.
    """
    with ready_run(request, facts, node, asked, lambda _: None) as ready:
        planned: list[dict[str, object]] = [
            {"case": entry.case.label, "commands": _commands(entry, request.nodes)}
            for comparison in ready.plan.comparisons
            for entry in comparison.entries
        ]
    return [*planned, *(refused(case, why) for case, why in ready.plan.unmeasured)]


def _commands(entry: ComparisonCase, nodes: int) -> list[str]:
    if nodes == 1:
        return [_composed(entry)]
    place, words = entry.place, entry.program.argv
    words = with_folders(words, place.scratch, place.own_storage)
    return list(commands_of(replace(entry.program, argv=words)))


def _composed(entry: ComparisonCase) -> str:
    """The command line as it would be started: launcher . runtime . flowos-init . argv."""
    prepared = entry.place.prepared(entry.words, entry.program)
    try:
        words, _ = prepared.command_line()
    finally:
        prepared.discard()
    return with_variables(entry.program, shlex.join(words))
