"""The environments of a run: each made ready, inspected, and given a unique label.

All launches of a measurement are prepared by `PreparedEnvironment.prepared`, on its node.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers import RUNTIMES, kernel_line, path_inside
from flowos.engine import Node, PreparedLaunch, Ready
from flowos.model import (
    BARE,
    Argv,
    Binary,
    Entered,
    Environment,
    EnvironmentRefused,
    Facts,
    FlowosError,
    Launch,
    MeasureError,
    MeasurementRequest,
    Needs,
    NotStarted,
    Outcome,
    Pairs,
    RuntimeFailed,
    Tried,
    Unmeasured,
)
from flowos.operations._current_folder import with_current_folder
from flowos.operations._facts import facts_inside
from flowos.operations._scratch import OWN_STORAGE
from flowos.operations.environment import environment
from flowos.operations.measure._bundle import Bundle
from flowos.operations.measure._cases import with_folders
from flowos.probes import Probe, Program

STORAGE = PurePath("/mnt/flowos")
"""Mount point in an image of the storage to be measured, if no shared folder contains it."""

_LIMIT_SECONDS, _EMULATED_LIMIT_SECONDS = 30.0, 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedEnvironment:
    """An environment that is ready on a node.

    folder: holds what is run in it, under the same path inside. scratch: path inside of the storage
    to be measured. facts: of the environment itself, if its own compilers and libraries are
    measured. cwd: where the user's commands run. nodes: on how many ranks are. own: the same with
    its own software, for probes that are measured with its own Python; None where it is this.
    own_storage: path inside of the node's own.
    """

    node: Node
    entered: Entered
    env: Environment
    folder: Path
    scratch: PurePath
    binary: Binary
    facts: Facts | Unmeasured
    cwd: PurePath
    nodes: int = 1
    own: "PreparedEnvironment | None" = None
    own_storage: PurePath = OWN_STORAGE

    @property
    def label(self) -> str:
        return self.entered.label

    def for_probe(self, probe: Probe) -> "PreparedEnvironment":
        """Where it is measured: here, or with the environment's own software."""
        return self.own if self.own and probe.info.own_python else self

    @property
    def all_ours(self) -> bool:
        """Are all processes of a launch our descendants?"""
        return not RUNTIMES[self.env.runtime].traits.has_helpers

    def launch(self, words: Argv, program: Program) -> Launch:
        """The launch of this command line, with what the program needs."""
        env, variables, cwd = self.env, self.node.variables(self.env), self.cwd
        if not program.as_caller:
            words = with_folders(words, self.scratch, self.own_storage)
            env = replace(env, variables=()) if self.binary == "same" else env
            variables, cwd = self._variables(program.variables), PurePath(self.folder)
        return Launch(
            argv=words,
            env=env,
            variables=variables,
            cwd=cwd,
            needs=Needs(cores=program.cores, ranks=program.ranks, alone=True),
            ranks=program.ranks,
            limit_seconds=program.limit_seconds,
            nodes=_nodes_of(self.node, min(program.nodes or program.ranks, self.nodes)),
        )

    def _variables(self, own: Pairs) -> Pairs:
        """Equal in all environments for the same binary; else those of the user's own commands."""
        if self.binary == "own":
            return self.node.variables(self.env, own)
        host = dict(self.node.variables(BARE))
        kept = {n: v for n, v in host.items() if not n.startswith("LD_") and n != "TMPDIR"}
        return tuple({**kept, **dict(own)}.items())

    def prepared(self, words: Argv, program: Program) -> PreparedLaunch:
        """The prepared launch of this command line. Ranks of our scripts use no MPI."""
        return self.node.prepare(
            self.launch(words, program),
            launcher=program.mpi_family or "direct",
            mpirun=program.mpirun,
            uses_mpi=not program.script,
        )

    def run(self, words: Argv, program: Program) -> Outcome:
        """Run this command line. Raises MeasureError if it cannot be started."""
        return self.started(self.prepared(words, program).run())

    def started(self, outcome: Outcome) -> Outcome:
        """Return the outcome. Raises MeasureError if the program could not be started."""
        match outcome.end:
            case NotStarted(reason) | RuntimeFailed(reason):
                raise MeasureError(f"{self.label}: {reason}")
        return outcome


def bare_on(
    node: Node, facts: Facts, folder: Path, scratch: PurePath, nodes: int = 1
) -> PreparedEnvironment:
    """The node without an image, for programs that were compiled there."""
    return PreparedEnvironment(
        node=node,
        entered=Entered(label=label_of("bare", "", "", ())),
        env=node.ready(BARE).env,
        folder=folder,
        scratch=scratch,
        binary="own",
        facts=facts,
        cwd=folder,
        nodes=nodes,
    )


def _nodes_of(node: Node, count: int) -> tuple[str, ...]:
    """It and others of its slice, as far as it has that many; () for this node alone."""
    others = node.neighbours()[: count - 1]
    return (node.name, *(other.name for other in others)) if others else ()


@contextmanager
def places(
    asked: Sequence[tuple[str, Environment]],
    bare: PreparedEnvironment,
    request: MeasurementRequest,
    tries: Bundle | None,
) -> Iterator[tuple[PreparedEnvironment, ...]]:
    """Environments on the node of `bare`, ready until the end of the `with`.

    asked: words, and their environments. tries: the bundled program that tries what the kernel
    allows; None to skip that. Raises EnvironmentRefused if one cannot be made ready.
    """
    with ExitStack() as stack:
        made: list[PreparedEnvironment] = []
        for number, (word, env) in enumerate(asked):
            env = _with_storage(env, bare.scratch)
            cwd, note = bare.cwd, ""
            if request.folder is not None:
                env, cwd, note = with_current_folder(env, Path(request.folder))
            ready = stack.enter_context(bare.node.ready(env))
            _refuse_emulated(word, ready.env, request)
            own = bare.folder / str(number)
            own.mkdir()
            place = replace(
                bare,
                entered=_entered(word, env, ready, [place.label for place in made], note),
                env=ready.env,
                folder=own,
                scratch=path_inside(bare.scratch, env.binds) or bare.scratch,
                binary=request.binary,
                cwd=cwd,
            )
            made.append(_looked_at(place, request, tries))
        yield tuple(made)


def label_of(name: str, way: str, digest: str, taken: Sequence[str]) -> str:
    """A unique label: by name, then with the image's digest, then with a number.

    way: the runtime, and the kernel that it boots.
    """
    label = f"{name}@{way}" if digest else name
    if digest and label in taken:
        label += f"#{digest.rpartition(':')[2][:8]}"
    numbers = (f"{label}#{number}" for number in range(2, len(taken) + 2))
    return next((one for one in (label, *numbers) if one not in taken), label)


def _refuse_emulated(word: str, env: Environment, request: MeasurementRequest) -> None:
    if env.boot and env.boot.accelerator == "tcg" and not request.emulated:
        raise EnvironmentRefused(
            f"environment {word}: without KVM its instructions are computed one by one (TCG), and "
            "its numbers say nothing of this machine; --emulated measures all the same"
        )


def _with_storage(env: Environment, scratch: PurePath) -> Environment:
    if env.image is None or path_inside(scratch, ()) is not None:
        return env
    return environment(env, binds=[(str(scratch), str(STORAGE))])


def _entered(
    word: str,
    asked: Environment,
    ready: Ready,
    taken: Sequence[str],
    note: str,
) -> Entered:
    if asked.image is None:
        return Entered(label=label_of("bare", "", "", taken))
    runtime, image = ready.env.runtime, asked.image
    known = ready.facts and ready.facts.tool(RUNTIMES[runtime].traits.program or runtime)
    boot = ready.env.boot
    name = PurePath(re.sub(rf"@({runtime}|auto)(:.*)?$", "", word)).name
    way = f"{runtime}:{boot.kernel.name}" if boot else runtime
    return Entered(
        label=label_of(name, way, image.digest, taken),
        image=str(image.source),
        form=image.form,
        digest=image.digest,
        runtime=runtime,
        version=known.version if known else "",
        notes=(*ready.notes, *([note] if note else [])),
        kernel=boot.kernel.release if boot else "",
        parameters=kernel_line(boot.kernel, boot.accelerator) if boot else "",
        accelerator=boot.accelerator if boot else "",
        memory_bytes=boot.memory_bytes if boot else 0,
    )


def _looked_at(
    place: PreparedEnvironment, request: MeasurementRequest, tries: Bundle | None
) -> PreparedEnvironment:
    """The environment with what the kernel allows in it, and its own facts if requested."""
    if tries:
        tried = _tried(place, tries)
        place = replace(place, entered=replace(place.entered, tried=tried))
    return place if request.binary == "same" else _with_own_facts(place, request)


def with_own_software(
    place: PreparedEnvironment, request: MeasurementRequest
) -> PreparedEnvironment:
    """With what `for_probe` gives for probes that need it."""
    if place.binary == "own":
        return place
    return replace(place, own=_with_own_facts(replace(place, binary="own"), request))


def _with_own_facts(place: PreparedEnvironment, request: MeasurementRequest) -> PreparedEnvironment:
    if place.env.image is None:
        return place
    return replace(place, facts=_own_facts(place, request))


def _tried(place: PreparedEnvironment, tries: Bundle) -> tuple[Tried, ...]:
    """Raises EnvironmentRefused if the program cannot run there."""
    emulated = place.entered.accelerator == "tcg"
    limit = _EMULATED_LIMIT_SECONDS if emulated else _LIMIT_SECONDS
    try:
        outcome = place.run(
            (*tries.words, str(place.scratch)), Program(argv=(), limit_seconds=limit)
        )
    except FlowosError as error:
        raise EnvironmentRefused(str(error)) from error
    try:
        answer = json.loads(outcome.stdout)["tried"]
        return tuple(Tried(name=t["name"], works=t["works"], says=t["says"]) for t in answer)
    except (ValueError, KeyError, TypeError) as error:
        said = outcome.stderr.decode(errors="replace").strip() or f"ended by {outcome.end}"
        raise EnvironmentRefused(f"{place.label}: it cannot be looked at: {said}") from error


def _own_facts(place: PreparedEnvironment, request: MeasurementRequest) -> Facts | Unmeasured:
    """Facts that the image's own Python collects in it."""
    programs = place.folder / "programs"
    with as_file(files("flowos.probes").joinpath("programs")) as source:
        shutil.copytree(source, programs, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        inside = replace(request, scratch=place.scratch)
        return facts_inside(inside, place.env, programs, place.node)
    except FlowosError as error:
        return Unmeasured(
            reason=f"what {place.label} has cannot be looked up: {error}",
            remedy="have python3 in the image"
            + (", or measure with --binary same" if request.binary == "own" else ""),
        )
