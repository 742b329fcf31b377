"""`flowos show`, `compare` and `report`: what the runs in the store say."""

import io
import shlex
from collections.abc import Iterator
from csv import reader
from dataclasses import dataclass, replace
from pathlib import Path

from flowos.model import (
    EQUAL_MARGIN,
    RUNS_MARGIN,
    Case,
    Run,
    Sample,
    StoreError,
    UsageError,
    Verdict,
    did_you_mean,
)
from flowos.operations._files import replaced
from flowos.operations.measure import (
    as_planned,
    lacked_time,
    not_begun,
    report_of,
    with_end,
    with_time_to_tell,
)
from flowos.plan import LOOKS, Numbers, by_probe, compare, limits_for, side_by_side
from flowos.probes import ENV, probe_named
from flowos.report import Report, csv
from flowos.store import open_store

_NUMBERS = (
    *("median", "low", "high", "best"),
    *("measured_ceiling", "measured_share", "nominal_ceiling", "nominal_share"),
)
"""Columns of the table; all others but the count are text."""


def report(ref: str, url: str | None) -> Report:
    """The report of a run by its id, a prefix or 'last'. Raises StoreError if there is none."""
    return report_of(*_samples_of(ref, url))


def rewritten(made: Report, out: Path, *, parquet: bool = False) -> tuple[Path, ...]:
    """Write a report again; parquet: the table of its numbers as Parquet, too.

    Raises StoreError if the folder is not writable, UsageError without the package pyarrow.
    """
    from flowos.operations.measure import written  # all formats: slow to import

    table = _as_parquet(csv(made)) if parquet else None
    notes: list[str] = []
    files = written(made, out, notes)
    if notes:
        raise StoreError(notes[0])
    if table is None:
        return files
    with replaced(out / "report.parquet") as file:
        file.write(table)
    return (*files, out / "report.parquet")


def _as_parquet(text: str) -> bytes:
    """The table of a report as Parquet, whose columns have the same types in every report."""
    try:
        from pyarrow import BufferOutputStream
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv
        from pyarrow.parquet import write_table
    except ImportError as error:
        raise UsageError(
            "--parquet needs the package pyarrow: pip install 'flowos-hpc[parquet]'"
        ) from error
    data = text.encode()
    types = {name: "string" for name in next(reader(io.StringIO(text)))}
    types |= {"count": "int64"} | dict.fromkeys(_NUMBERS, "float64")
    table = read_csv(
        io.BytesIO(data),
        ReadOptions(block_size=len(data) + 1),  # a row is in one block
        ParseOptions(newlines_in_values=True),
        ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
    )
    out = BufferOutputStream()
    write_table(table, out)
    return bytes(out.getvalue())


def compared(
    ref: str, url: str | None, *, axis: str, base: str = "", margin: float | None = None
) -> tuple[Verdict, ...]:
    """Verdicts between the levels of an axis inside one run, in which they were interleaved.

    base: by default the axis's first level. Cases that were not measured at it are left out.
    margin: by default that of the run itself.
    """
    run, measured = _samples_of(ref, url)
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
    return (with_end if axis == ENV else with_time_to_tell)(run, found)


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


def beside(refs: tuple[str, str], url: str | None, *, margin: float = RUNS_MARGIN) -> RunComparison:
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


def described(run: Run) -> Iterator[tuple[str, str]]:
    """What numbers may depend on."""
    yield "host", run.host
    yield "processor", run.facts.cpu_model
    yield "cpus", str(len(run.facts.allowed))
    yield "quota of cpus", "" if run.facts.quota_cpus is None else f"{run.facts.quota_cpus:g}"
    yield "GPUs", ", ".join(run.facts.gpus)
    yield "kernel", run.facts.kernel
    yield "FlowOS", run.version
    yield "effort", run.request.effort
    yield "binary", run.request.binary
    yield "matrix", str(run.request.matrix or "")
    yield "folder on the storage", str(run.request.scratch)
    yield "environments", ", ".join(run.request.environments)
    yield "commands", "; ".join(map(shlex.join, run.request.commands))
    yield "--ignore-failure", "yes" * run.request.ignore_failure
    yield "folder of commands", str(run.request.folder or "")


def numbers_of(report: Report) -> Numbers:
    """What a run is compared by with one that was not interleaved with it."""
    limits = limits_for(report.run.facts.architecture, (s.state for s in report.samples))
    return Numbers(
        run=report.run.id,
        measurements=report.measurements,
        samples=report.samples,
        failed=[c for c, why in report.run.unmeasured if not not_begun(why)],
        ended_early=report.run.ended_early,
        limits=limits,
    )


def _samples_of(ref: str, url: str | None) -> tuple[Run, tuple[Sample, ...]]:
    with open_store(url, make=False) as store:
        run = store.run(ref)
        return run, store.samples(run)


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
