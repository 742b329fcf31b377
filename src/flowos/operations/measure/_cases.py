"""Which cases are measured on a node, found before anything is measured; `--dry-run` shows them."""

import shlex
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath

from flowos._dataclasses import replace
from flowos.model import (
    Argv,
    Case,
    Facts,
    MeasurementRequest,
    Unmeasured,
    UsageError,
    did_you_mean,
)
from flowos.operations._scratch import NEW_FOLDER
from flowos.probes import Build, ComparedCase, Probe, Program, probes_for

Offered = tuple[ComparedCase, ...] | Unmeasured


def chosen(request: MeasurementRequest, environments: int = 1) -> tuple[Probe, ...]:
    """The probes that it names in the table's order; all for no name.

    Commands of the user are measured alone, and by one probe. Raises UsageError if one is unknown.
    """
    names, asked = request.probes, bool(request.commands)
    known = {p.name: p for p in probes_for(environments) if p.info.asked == asked}
    for name in (name for name in names if name not in known):
        listed, near = ", ".join(known), did_you_mean(name, known)
        if environments > 1:
            what = f"probe {name!r} is not compared between environments; {listed} are"
            raise UsageError(f"{what}{near}")
        raise UsageError(f"no probe is called {name!r}; the probes are {listed}{near}")
    return tuple(known[n] for n in known if n in names or not names)


def offered(
    probe: Probe, facts: Facts, request: MeasurementRequest, environments: int = 1
) -> Offered:
    """What a probe measures on a node with these facts, in each of so many environments.

    A suite's step leaves out what its earlier runs measured.
    """
    step = request.suite
    done = step.measured if step and step.probe == probe.name else ()
    if environments > 1:
        found = probe.compared(facts, request)
        return found if isinstance(found, Unmeasured) else _but(done, found)
    cases = probe.cases(facts, request)
    if isinstance(cases, Unmeasured):
        return cases
    return _but(done, (ComparedCase(probe=probe, case=case, shown=case) for case in cases))


def _but(done: Collection[str], found: Iterable[ComparedCase]) -> tuple[ComparedCase, ...]:
    return tuple(each for each in found if each.shown.label not in done)


def described(
    facts: Facts, request: MeasurementRequest, own_storage: PurePath
) -> list[dict[str, object]]:
    """Each case of one environment with its command lines, as plain JSON values.

    own_storage: of each node. The folder on the measured storage has another name in each run.
    """
    scratch = request.scratch / NEW_FOLDER
    planned: list[dict[str, object]] = []
    unmeasured: list[dict[str, object]] = []
    for probe in chosen(request):
        found = offered(probe, facts, request)
        if isinstance(found, Unmeasured):
            unmeasured.append(refused(Case(probe.name), found))
            continue
        for each in found:
            program = probe.program(each.case)
            if not program.as_caller:
                words = with_python(with_folders(program.argv, scratch, own_storage))
                program = replace(program, argv=words)
            commands = list(commands_of(program))
            planned.append({"case": each.case.label, "commands": commands})
    return [*planned, *unmeasured]


def with_folders(words: Argv, scratch: PurePath, own_storage: PurePath) -> Argv:
    """The words of a `Program` that measures these folders."""
    return tuple(
        word.replace("{scratch}", str(scratch)).replace("{own}", str(own_storage)) for word in words
    )


def with_python(words: Argv) -> Argv:
    """The words of a `Program` that runs by the Python of FlowOS."""
    return tuple(sys.executable if word == "{python}" else word for word in words)


def refused(case: Case, why: Unmeasured) -> dict[str, object]:
    return {"case": case.label, "unmeasured": why.reason, "remedy": why.remedy}


def commands_of(program: Program) -> Iterator[str]:
    """The command lines that compile it and run it, without launcher options and environment."""
    words = program.argv
    if program.build:
        yield _compile(program.build)
        words = (program.build.key, *words)
    if program.script:
        words = (words[0], program.script, *words[1:])
    if program.mpi_family:
        words = (program.mpirun, "-n", str(program.ranks), *words)
    yield with_variables(program, shlex.join(words))


def with_variables(program: Program, line: str) -> str:
    """The command line with the program's variables, as typed in a shell."""
    return " ".join((*(f"{n}={shlex.quote(v)}" for n, v in program.variables), line))


def _compile(build: Build) -> str:
    """One command for what is compiled source by source."""
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
