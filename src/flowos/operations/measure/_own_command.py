"""The command line by which a run was asked for, with another time: what a remedy says."""

import shlex
from collections.abc import Iterator

from flowos.model import MeasurementRequest, Run
from flowos.operations._scratch import USUAL_SCRATCH
from flowos.probes import deployment_words, measure_command
from flowos.probes.suites import SUITES


def own_command(run: Run, minutes: int, probes: tuple[str, ...] | None = None) -> str:
    """Such as flowos measure --quick --env mine --only stream --minutes 10.

    probes: instead of those that were asked for. A part of a suite has the time that it needs
    without --minutes.
    """
    request = run.request
    if len(request.commands) > 1:
        commands = (("--command", shlex.join(argv)) for argv in request.commands)
        words = [word for pair in commands for word in pair]
        return shlex.join(
            ["flowos", "compare", *words, *_effort(request), "--minutes", str(minutes)]
        )
    names = request.probes if probes is None else probes
    chosen = ["--only", ",".join(names)] if names and not request.commands else []
    time = ["--minutes", str(minutes)]
    if request.suite is not None:
        chosen, time = ["--suite", request.suite.suite, *_figures(request)], []
    asked = (*_effort(request), *_environments(request), *chosen, *time, *_place(run))
    words = [word for argv in request.commands for word in ("--", *argv)]
    return measure_command(*asked, *words)


def _effort(request: MeasurementRequest) -> Iterator[str]:
    if request.effort != "normal":
        yield f"--{request.effort}"
    if request.ignore_failure:
        yield "--ignore-failure"


def _environments(request: MeasurementRequest) -> Iterator[str]:
    """bare is compared with one alone by default."""
    bare, *others = request.environments or ("bare",)
    alone = bare == "bare" and len(others) == 1 and others != ["bare"]
    for word in others if alone or not others else request.environments:
        yield from ("--env", word)
    if request.binary != "same":
        yield from ("--binary", request.binary)
    if request.emulated:
        yield "--emulated"


def _place(run: Run) -> Iterator[str]:
    request = run.request
    yield from deployment_words(run.deployment)
    if request.scratch != USUAL_SCRATCH:
        yield from ("--scratch", str(request.scratch))
    for name, value in request.nominal:
        yield from ("--nominal", f"{name}={value:g}")
    if request.matrix is not None:
        yield from ("--matrix", str(request.matrix))


def _figures(request: MeasurementRequest) -> Iterator[str]:
    """Those of the suite that its probe is measured for."""
    step = request.suite
    if step is not None and step.suite in SUITES:
        figures = SUITES[step.suite].figures
        ours = [f.number for f in figures if step.probe in {part.probe for part in f.parts}]
        yield from ("--only", ",".join(ours))
