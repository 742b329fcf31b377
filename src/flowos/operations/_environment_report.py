"""The book of a run that measured environments side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from flowos.model import Entered, Measurement, Run, Sample
from flowos.plan import NoiseThresholds, rounds_to_tell
from flowos.probes import blocked, probes_for, verdicts_between
from flowos.report import Report, Section

_BINARY = {
    "same": "the same binaries ran everywhere, each with its loader and libraries beside it: what"
    " differs is the environment only (MPI programs took the MPI of the environment)",
    "own": "each environment compiled its own programs and took its own libraries",
}


def book_beside(
    run: Run, samples: Sequence[Sample], measured: tuple[Measurement, ...], limits: NoiseThresholds
) -> Report:
    """All that is concluded; `measured` are the numbers, as any run has them."""
    verdicts = verdicts_between(run.environments, samples, limits)
    return Report(
        run=run,
        measurements=measured,
        samples=tuple(samples),
        verdicts=tuple(replace(v, needed=rounds_to_tell(v) or 0) for v in verdicts),
        sections=tuple(_sections({m.case.probe for m in measured})),
        findings=(
            *_differences(run.environments[0].label, measured),
            _BINARY[run.wanted.binary],
            *blocked(run.environments),
            *(line for env in run.environments for line in _described(env)),
        ),
    )


def _sections(found: set[str]) -> Iterator[Section]:
    for probe in probes_for(environments=2):
        if probe.name in found:
            yield Section(probe=probe.name, title=probe.info.title, charts=probe.info.env_charts)


def _differences(base: str, measured: Sequence[Measurement]) -> Iterator[str]:
    for probe in probes_for(environments=2):
        yield from probe.differences(base, [m for m in measured if m.case.probe == probe.name])


def _described(env: Entered) -> Iterator[str]:
    if env.digest:
        image = f"{env.form} {env.image}, {env.digest[:23]}"
        yield f"{env.label}: {image}, entered by {env.runtime} {env.version}".rstrip()
    yield from (f"{env.label}: {note}" for note in env.notes)
