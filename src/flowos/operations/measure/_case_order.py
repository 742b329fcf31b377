"""Samples in the order in which their cases were planned: the order of a round is drawn."""

from collections.abc import Iterable, Sequence
from itertools import count

from flowos.model import Case, Run, Sample
from flowos.probes import ENV, probes_for


def as_planned(run: Run, samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Sort by case as its probe plans them, the base environment first; within a case as measured.

    So the first level of an axis, and the rows of a report, do not depend on the drawn order.
    """
    environments = {entered.label: at for at, entered in enumerate(run.environments)}
    planned = tuple(_planned(run, {s.case.probe for s in samples}))
    seen: dict[Case, tuple[int, int, int]] = {}
    numbers = count()
    for case in dict.fromkeys(s.case for s in samples):
        fit = (at for at, known in enumerate(planned) if _is_of(case, known))
        place = next(fit, len(planned))
        seen[case] = (place, environments.get(case.level(ENV), 0), next(numbers))
    return tuple(sorted(samples, key=lambda s: seen[s.case]))


def _planned(run: Run, probes: set[str]) -> Iterable[Case]:
    for probe in probes_for():
        cases = probe.cases(run.facts, run.request) if probe.name in probes else ()
        if isinstance(cases, tuple):
            yield from cases


def _is_of(found: Case, planned: Case) -> bool:
    """Is it this case, or a point of it that its program swept by itself?"""
    return found.probe == planned.probe and set(planned.levels) <= set(found.levels)
