"""Programs to be compiled, as a flow of command tasks."""

from collections.abc import Iterable

from flowos.model import Command, File, Flow, Out, PortSpec, Task, Word, flow_output
from flowos.probes._base import Build


def flow_of_builds(builds: Iterable[Build]) -> Flow | None:
    """One flow that compiles each of them once; None if there is nothing to compile."""
    once = {build.key: build for build in builds}
    ports = tuple(build_task(build)() for build in once.values())
    return flow_output(*ports, name="builds") if ports else None


def build_task(build: Build) -> Task:
    """Compile one program; a binary of the same key is taken from the cache."""
    words: tuple[Word, ...] = (build.compiler, *build.flags, *build.include_flags)
    words += tuple(map(str, build.sources))
    words += ("-o", Out("binary"), *build.libraries)
    return Task(
        name=f"build {build.key}",
        inputs=(),
        outputs=(PortSpec("binary", File),),
        body=Command(argv=words, once=build.key, limit_seconds=build.limit_seconds),
    )
