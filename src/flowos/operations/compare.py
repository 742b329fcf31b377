"""`flowos compare`: the levels of an axis inside one run, or two runs."""

from collections.abc import Iterator

from flowos._dataclasses import dataclass, replace
from flowos.model import (
    EQUAL_MARGIN,
    RUNS_MARGIN,
    Case,
    Run,
    Sample,
    UsageError,
    Verdict,
    did_you_mean,
)
from flowos.operations.history import described, numbers_of, report, samples_of
from flowos.operations.measure import as_planned, lacked_time, with_end, with_time_to_decide
from flowos.plan import LOOKS, Numbers, by_probe, compare, limits_for, side_by_side
from flowos.probes import ENV, probe_named


def compare_levels(
    ref: str, url: str | None, *, axis: str, base: str = "", margin: float | None = None
) -> tuple[Verdict, ...]:
    """Verdicts between the levels of an axis inside one run, in which they were interleaved.

    base: by default the axis's first level. Cases that were not measured at it are left out.
    margin: by default that of the run itself.
    """
    run, measured = samples_of(ref, url)
    samples = as_planned(run, measured)
    levels = _levels(samples)
    if axis not in levels:
        raise UsageError(_without_axis(run, samples, axis, levels))
    if base and base not in levels[axis]:
        known = f"{', '.join(levels[axis])}{did_you_mean(base, levels[axis])}"
        raise UsageError(f"axis {axis!r} of run {run.id} has no level {base!r}; it has {known}")
    base = base or levels[axis][0]
    limits = limits_for(run.facts.architecture, (s.state for s in samples))
    judged: dict[str, list[Sample]] = {}
    for sample in _with_base(samples, axis, base):
        if _is_judged(sample, axis):
            judged.setdefault(sample.case.probe, []).append(sample)
    found: list[Verdict] = []
    for probe, ours in judged.items():
        looks, its = _of_the_run(run, probe, axis)
        its = its if margin is None else margin
        found += compare(ours, axis=axis, base=base, margin=its, looks=looks, limits=limits)
    return (with_end if axis == ENV else with_time_to_decide)(run, found)


def _of_the_run(run: Run, probe: str, axis: str) -> tuple[int, float]:
    """How many looks the run's own report takes the error of, and its margin."""
    found = probe_named(probe)
    if found is None or axis not in (ENV, found.info.versus, found.info.compares):
        return 1, EQUAL_MARGIN
    asked = None if axis == found.info.compares else run.request.margin
    return LOOKS, found.info.margin if asked is None else asked


def _without_axis(
    run: Run, samples: tuple[Sample, ...], axis: str, levels: dict[str, list[str]]
) -> str:
    """Why there is nothing to compare along this axis."""
    measured = sorted({s.case.level(axis) for s in samples} - {""})
    missed = [why for case, why in run.unmeasured if case.level(axis) and lacked_time(why)]
    if len(measured) <= 1 and missed:
        only = f"only {axis}={measured[0]}" if measured else f"no {axis}"
        said = f"run {run.id}: {only} was measured (the time was out)"
        remedy = next((why.remedy for why in missed if "`" in why.remedy), missed[0].remedy)
        return f"{said}, so there is nothing to compare; {remedy}"
    known = f"{', '.join(levels) or 'none'}{did_you_mean(axis, levels)}"
    return f"run {run.id} has no axis {axis!r}; it has {known}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """The second run compared with the first.

    probes, numbers: verdicts by probe, and on each number that both have. changes: what is known
    to differ between the runs, one line each.
    """

    probes: tuple[Verdict, ...]
    numbers: tuple[Verdict, ...]
    changes: tuple[str, ...]


def compare_runs(
    refs: tuple[str, str], url: str | None, *, margin: float = RUNS_MARGIN
) -> RunComparison:
    """Compare the second run with the first. See `plan.side_by_side` for what that proves."""
    first, second = (report(ref, url) for ref in refs)
    if first.run.id == second.run.id:
        raise UsageError(f"both are run {first.run.id}: there is nothing to compare")
    base, other = numbers_of(first), numbers_of(second)
    before, now = _programs(base), _programs(other)
    rows = tuple(
        row if before[case := Case(row.probe, row.rest)] == now[case] else _of_two_programs(row)
        for row in side_by_side(base, other, margin=margin)
    )
    return RunComparison(
        probes=by_probe(rows, base, other, margin=margin),
        numbers=rows,
        changes=tuple(_changes(first.run, second.run)),
    )


def _programs(numbers: Numbers) -> dict[Case, tuple[str, str]]:
    """What was run of commands of the user, whose labels are cut."""
    cases = {m.case for m in numbers.measurements}
    return {case: (case.detail("argv"), case.detail("ignore_failure")) for case in cases}


def _of_two_programs(row: Verdict) -> Verdict:
    why = f"it ran another command than {row.base}, or only one of them counted failed runs"
    return replace(row, answer="inconclusive", why=why, marks=(f"{row.other}: {why}", *row.marks))


def _changes(first: Run, second: Run) -> Iterator[str]:
    for (name, before), (_, now) in zip(described(first), described(second), strict=True):
        if before != now:
            yield f"{name}: {before or 'none'}, then {now or 'none'}"


def _is_judged(sample: Sample, axis: str) -> bool:
    """Of commands it is the time alone, as in the run itself."""
    probe = probe_named(sample.case.probe)
    return probe is None or axis != probe.info.versus or probe.decides(sample)


def _with_base(samples: tuple[Sample, ...], axis: str, base: str) -> tuple[Sample, ...]:
    """The samples of cases that were also measured at this level of the axis."""
    cases = {sample.case for sample in samples}
    return tuple(s for s in samples if s.case.at(**{axis: base}) in cases)


def _levels(samples: tuple[Sample, ...]) -> dict[str, list[str]]:
    """Axes on which a run's cases differ, with their levels in the order planned."""
    found: dict[str, list[str]] = {}
    cases: dict[Case, None] = dict.fromkeys(s.case for s in samples)
    for case in cases:
        for axis, level in case.levels:
            if level not in found.setdefault(axis, []):
                found[axis].append(level)
    return {axis: levels for axis, levels in found.items() if len(levels) > 1}
