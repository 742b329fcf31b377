"""A probe's `Program` as a flow of command tasks: build it, then run it alone."""

from collections.abc import Iterable

from flowos.model import (
    Command,
    File,
    Flow,
    Gang,
    In,
    Needs,
    Out,
    PortSpec,
    Task,
    Word,
    any_,
    flow_output,
)
from flowos.probes._base import Build, Program

_BINARY = PortSpec("binary", File)
_OUTCOME = PortSpec("outcome", any_)


def flow_of(program: Program, name: str, scratch: str = "") -> Flow:
    """The flow that measures: no inputs, one output, the program's `Outcome`.

    scratch: the folder that stands for "{scratch}" in the program's words.
    """
    words = tuple(word.replace("{scratch}", scratch) for word in program.argv)
    if program.build is None:
        return flow_output(_run(program, name, words, ())())
    binary = build_task(program.build)()
    return flow_output(_run(program, name, (In("binary"), *words), (_BINARY,))(binary))


def flow_of_builds(builds: Iterable[Build]) -> Flow | None:
    """One flow that compiles them all, each once; None where there is nothing to compile."""
    once = {build.key: build for build in builds}
    ports = tuple(build_task(build)() for build in once.values())
    return flow_output(*ports, name="builds") if ports else None


def build_task(build: Build) -> Task:
    """Compile one program; what was compiled under the same key before is taken from the cache."""
    words: tuple[Word, ...] = (build.compiler, *build.flags, *build.include_flags)
    words += tuple(map(str, build.sources))
    words += ("-o", Out("binary"), *build.libraries)
    return Task(
        name=f"build {build.key}",
        inputs=(),
        outputs=(_BINARY,),
        body=Command(argv=words, once=build.key, limit_seconds=120.0 * len(build.sources)),
    )


def _run(
    program: Program, name: str, words: tuple[Word, ...], inputs: tuple[PortSpec, ...]
) -> Task:
    command = Command(
        argv=words,
        captures=(("outcome", "outcome"),),
        variables=program.variables,
        limit_seconds=program.limit_seconds,
    )
    gang = Gang(command=command, mpi=program.mpi_family, starter=program.starter)
    return Task(
        name=name,
        inputs=inputs,
        outputs=(_OUTCOME,),
        body=gang if program.mpi_family else command,
        needs=Needs(cores=program.cores, ranks=program.ranks, alone=True),
    )
