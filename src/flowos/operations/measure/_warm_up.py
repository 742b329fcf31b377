"""Runs each case once before its first sample: it works, and how long it takes is known then."""

from collections.abc import Iterator, MutableMapping
from statistics import fmean

from flowos._dataclasses import replace
from flowos.engine import now
from flowos.model import Case, FlowosError, MeasureError, Progress, Unmeasured
from flowos.operations.measure._plan import Comparison, ComparisonCase, MeasurementPlan
from flowos.operations.measure._sampler import Sampler
from flowos.operations.measure._time import overhead_seconds
from flowos.probes import ENV


def warmed_up(
    plan: MeasurementPlan, sampler: Sampler, unmeasured: MutableMapping[Case, Unmeasured]
) -> Iterator[Comparison]:
    """The comparisons, each with the time that one of its cases takes.

    What fails in an environment is left out there, and the reason noted. Raises MeasureError if it
    fails in the base or in all others, or if what was asked for cannot be measured at all.
    """
    if sampler.run.request.commands and not plan.comparisons:
        raise MeasureError(_in_words(plan.unmeasured[0][1]))
    for comparison in plan.comparisons:
        if comparison.probe.info.warms_up:
            yield _warmed_up(comparison, sampler, unmeasured)
        else:
            yield comparison


def _warmed_up(
    comparison: Comparison, sampler: Sampler, unmeasured: MutableMapping[Case, Unmeasured]
) -> Comparison:
    """The comparison without entries that fail."""
    base = comparison.entries[0]
    seconds: dict[Case, float] = {}
    failed: dict[Case, Unmeasured] = {}
    for entry in comparison.entries:
        sampler.on_progress(Progress(doing=f"a first run: {entry.case.label}"))
        began = now()
        why = _failure(entry, sampler)
        if why is None:
            seconds[entry.case] = now() - began
        elif entry.place is base.place:
            raise MeasureError(_in_words(why))
        else:
            failed[entry.case] = why
    if failed and len(seconds) == 1:
        raise MeasureError(
            "; ".join(f"in {c.level(ENV)} {_in_words(w)}" for c, w in failed.items())
        )
    unmeasured.update(failed)
    entries = tuple(entry for entry in comparison.entries if entry.case in seconds)
    took = fmean(seconds.values()) + overhead_seconds(environments=len(entries))
    return replace(comparison, entries=entries, seconds=took)


def _failure(entry: ComparisonCase, sampler: Sampler) -> Unmeasured | None:
    try:
        answer = replace(entry, program=sampler.limited(entry.program)).read()
    except FlowosError as error:
        return Unmeasured(reason=str(error))
    return answer if isinstance(answer, Unmeasured) else None


def _in_words(why: Unmeasured) -> str:
    return f"{why.reason}; {why.remedy}" if why.remedy else why.reason
