"""`flowos report RUN RUN ...`: runs of the store, and reports of others, on one page."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.model import RUNS_MARGIN, Run, Sample, StoreError, UsageError, Verdict
from flowos.operations._alike_runs import differences, machine_of
from flowos.operations._documents import read_document
from flowos.operations._files import write_together
from flowos.operations.history import described, numbers_of, report
from flowos.operations.measure import report_of
from flowos.plan import side_by_side
from flowos.report import (
    Report,
    ReportedRun,
    SideBySide,
    read_json,
    side_by_side_html,
    side_by_side_json,
    side_by_side_text,
)

_MAX_BYTES = 1 << 28
_LARGEST = 1e60
"""No measurement is so large, and a curve can still be drawn."""
MAX_RUNS = 50
"""More cannot be read on one page."""


@dataclass(frozen=True, slots=True)
class _Found:
    report: Report
    source: str


def is_file(ref: str) -> bool:
    """Is it the name of a report's file, and no id of a run?"""
    return ref.endswith(".json") or Path(ref).is_file()


def imported(path: Path) -> Report:
    """The report of a run that was measured elsewhere, its numbers computed anew from its samples.

    Raises UsageError, with the file's name, if it is no report.
    """
    given = read_document(path, "report", read_json, max_bytes=_MAX_BYTES)
    if given.measurements and not given.samples:
        raise UsageError(f"{path}: this report has numbers and no samples of them")
    _check_names(path, given.samples)
    _check_values(path, given.samples)
    try:
        return report_of(given.run, given.samples)
    except (ValueError, LookupError, ArithmeticError, TypeError) as error:
        reason = str(error) or type(error).__name__
        raise UsageError(f"{path}: this report cannot be used: {reason!r:.100}") from error


def _check_names(path: Path, samples: Sequence[Sample]) -> None:
    """These become names in files of other forms; levels are text in each."""
    names = dict.fromkeys(
        name
        for s in samples
        for name in (s.case.probe, s.metric, s.unit, *(axis for axis, _ in s.case.levels))
    )
    for name in names:
        if not name.isprintable():
            raise UsageError(
                f"{path}: this report cannot be used: {name!r:.80} is no name of a probe, metric,"
                " unit or axis: it has characters that cannot be printed"
            )


def _check_values(path: Path, samples: Sequence[Sample]) -> None:
    for sample in samples:
        for value in sample.values:
            if _LARGEST < abs(value) < math.inf:
                raise UsageError(
                    f"{path}: this report cannot be used: a value of {sample.case.label!r:.100} is"
                    f" {value:.3g}"
                )


def report_by(ref: str, url: str | None) -> Report:
    """The report of a stored run, or of a file. Raises StoreError or UsageError for neither."""
    return imported(Path(ref)) if is_file(ref) else report(ref, url)


def side_by_side_of(refs: Sequence[str], url: str | None) -> SideBySide:
    """These runs in this order, each compared with the first.

    refs: ids, prefixes of ids, 'last', or files `report.json`. Raises UsageError for a run that is
    given twice.
    """
    if len(refs) > MAX_RUNS:
        raise UsageError(f"{len(refs)} runs are more than a page can show: give {MAX_RUNS} at most")
    found = [_Found(report_by(ref, url), ref if is_file(ref) else "") for ref in refs]
    _check_each_once([each.report.run.id for each in found], refs)
    first = found[0].report
    return SideBySide(
        runs=tuple(_reported(number, each, first) for number, each in enumerate(found, start=1)),
        differences=tuple(_differences([each.report.run for each in found])),
    )


def written_side_by_side(refs: Sequence[str], url: str | None, out: Path) -> tuple[Path, ...]:
    """Write the page, JSON and text. Raises StoreError if the folder is not writable."""
    shown = side_by_side_of(refs, url)
    texts = {
        "side-by-side.html": side_by_side_html(shown),
        "side-by-side.json": side_by_side_json(shown),
        "side-by-side.txt": side_by_side_text(shown),
    }
    try:
        return write_together(out, texts)
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror}") from error


def _check_each_once(ids: Sequence[str], refs: Sequence[str]) -> None:
    for at, id_ in enumerate(ids):
        if (before := ids.index(id_)) < at:
            raise UsageError(
                f"{refs[before]} and {refs[at]} are the same run {id_!r}: give it once"
            )


def _reported(number: int, found: _Found, first: Report) -> ReportedRun:
    run = found.report.run
    unlike = tuple(what for what, _, _ in differences(first.run, run, one_machine=False))
    verdicts = () if unlike or found.report is first else _verdicts(first, found.report)
    return ReportedRun(
        label=f"{number}: {machine_of(run)}, {run.started[:16].replace('T', ' ')}",
        machine=machine_of(run),
        report=found.report,
        source=found.source,
        unlike=unlike,
        verdicts=verdicts,
    )


def _verdicts(first: Report, other: Report) -> tuple[Verdict, ...]:
    return side_by_side(numbers_of(first), numbers_of(other), margin=RUNS_MARGIN)


def _differences(runs: Sequence[Run]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for pairs in zip(*map(described, runs), strict=True):
        values = tuple(value for _, value in pairs)
        if len(set(values)) > 1:
            yield pairs[0][0], values
