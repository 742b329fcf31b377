"""Environments side by side: how they are entered, what all of them allow, and which is faster.

Each probe chooses its compared cases: few, on all cores. After figures 5 to 10 of Sato and Ogawa,
Linux containers on AI clouds: matrix products, STREAM entered by exec, shell and run, MPI, storage;
and start-up.
"""

from collections.abc import Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import Argv, Case, Entered, Sample, Tried, Verdict
from flowos.plan import NOISE_THRESHOLDS, NoiseThresholds, compare, geomean_verdict
from flowos.probes import _tables
from flowos.probes._base import ENV, EnteringWay, Probe


def in_environment(shown: Case, label: str) -> Case:
    """The case with the label of an environment."""
    return replace(shown, levels=((ENV, label), *shown.levels))


def verdicts_between(
    environments: Sequence[Entered],
    seen: Iterable[Sample],
    limits: NoiseThresholds = NOISE_THRESHOLDS,
    *,
    margin: float | None = None,
) -> tuple[Verdict, ...]:
    """Compare each environment with the first: overall, then on each deciding number.

    margin: instead of the probes' own.
    """
    base = environments[0].label
    deciding: dict[Probe, list[Sample]] = {}
    for sample in seen:
        probe = _tables.probe_named(sample.case.probe)
        if probe and probe.decides(sample):
            deciding.setdefault(probe, []).append(sample)
    return tuple(
        verdict
        for judged in (geomean_verdict, compare)
        for probe, samples in deciding.items()
        for verdict in judged(
            samples,
            axis=ENV,
            base=base,
            margin=probe.info.margin if margin is None else margin,
            limits=limits,
        )
    )


def entered(way: EnteringWay, words: Argv, entry_point: Argv) -> Argv:
    """The command line by which an environment is entered this way, to run `words`."""
    if way == "shell":
        return ("/bin/sh", "-c", '"$@"', "sh", *words)
    return (*entry_point, *words) if way == "run" else words


def allowed_everywhere(environments: Iterable[Entered]) -> tuple[Tried, ...]:
    """What works in all of them; else the first error message."""
    found: dict[str, Tried] = {}
    for tried in (t for env in environments for t in env.tried):
        if tried.name not in found or found[tried.name].works:
            found[tried.name] = tried
    return tuple(found.values())


def blocked(environments: Sequence[Entered]) -> tuple[str, ...]:
    """What works only in some of them, in words: it is then used in none."""
    works = {t.name for env in environments for t in env.tried if t.works}
    complaints: dict[str, list[str]] = {}
    for env in environments:
        for tried in env.tried:
            if tried.name in works and not tried.works:
                complaints.setdefault(tried.name, []).append(f"{env.label} ({tried.says})")
    return tuple(
        f"{name} is not to be had in {', '.join(where)}: it was used in no environment"
        for name, where in complaints.items()
    )
