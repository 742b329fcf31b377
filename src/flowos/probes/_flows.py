"""Programs to be compiled, as a flow of command tasks."""

from collections.abc import Iterable, Sequence

from flowos.model import Command, File, Flow, In, Out, Port, PortSpec, Task, Word, flow_output
from flowos.probes._build import SOURCE_SECONDS, Build, ObjectFile


def flow_of_builds(builds: Iterable[Build]) -> Flow | None:
    """One flow that compiles each of them once; None if there is nothing to compile.

    Its outputs are the binaries. Of a program of several sources each is a task, whose object file
    others with the same source, compiler and flags share. Tasks that are ready start in the order
    in which they are created: a program's own source takes longest, and goes first.
    """
    once = {build.key: build for build in builds}
    objects = {key: build.objects for key, build in once.items() if build.also}
    made: dict[str, Port] = {}
    for key, (own, *_) in objects.items():
        _add(made, key, once[key], own)
    binaries = {key: _whole_task(key, build)() for key, build in once.items() if not build.also}
    for key, of_program in objects.items():
        for each in of_program:
            _add(made, key, once[key], each)
    for key, of_program in objects.items():
        parts = [made[each.key] for each in of_program]
        binaries[key] = _link_task(key, once[key], len(parts))(*parts)
    return flow_output(*(binaries[key] for key in once), name="builds") if once else None


def program_of_task(name: str) -> str:
    """The key of the program that a task of such a flow is for."""
    return name.removeprefix("build ").partition(":")[0]


def _whole_task(key: str, build: Build) -> Task:
    """Compile and link a program of one source."""
    words = (build.compiler, *build.flags, *build.include_flags, str(build.sources[0]))
    return _task(f"build {key}", key, (*words, "-o", Out("binary"), *build.libraries))


def _add(made: dict[str, Port], program: str, build: Build, each: ObjectFile) -> None:
    """The object file, unless it is there already."""
    if each.key not in made:
        made[each.key] = _object_task(program, build, each)()


def _object_task(program: str, build: Build, each: ObjectFile) -> Task:
    words = (*each.compiler, *build.flags, *build.include_flags, "-c", str(each.path))
    return _task(f"build {program}: {each.source}", each.key, (*words, "-o", Out("object.o")))


def _link_task(key: str, build: Build, count: int) -> Task:
    objects = tuple(In(f"object {number}") for number in range(1, count + 1))
    words: tuple[Word, ...] = (build.compiler, *build.flags, *objects, "-o", Out("binary"))
    return _task(f"build {key}", key, (*words, *build.libraries))


def _task(name: str, key: str, words: Sequence[Word]) -> Task:
    """What is in the cache under the key is taken from there."""
    named = {kind: [w.name for w in words if isinstance(w, kind)] for kind in (In, Out)}
    return Task(
        name=name,
        inputs=tuple(PortSpec(each, File) for each in named[In]),
        outputs=tuple(PortSpec(each, File) for each in named[Out]),
        body=Command(argv=tuple(words), once=key, limit_seconds=SOURCE_SECONDS),
    )
