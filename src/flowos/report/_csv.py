"""Renders all measurements as one table: SI base units, one column for each axis."""

import csv as table
import io
from collections.abc import Collection

from flowos.model import Measurement
from flowos.report._panels import as_number
from flowos.report._report import Report
from flowos.report._words import share_of

_FIXED = (
    "probe",
    "metric",
    "unit",
    "count",
    "median",
    "low",
    "high",
    "best",
    "is_ceiling",
    "measured_ceiling",
    "measured_share",
    "measured_of",
    "nominal_ceiling",
    "nominal_share",
    "nominal_of",
    "trusted",
    "marks",
)
NUMBER_COLUMNS = (
    *("median", "low", "high", "best"),
    *("measured_ceiling", "measured_share", "nominal_ceiling", "nominal_share"),
)
"""Those with numbers, but for `count`, which is whole; all others are text."""


def csv(report: Report) -> str:
    """One row for each measurement; empty cells for unknown values (RFC 4180)."""
    axes = tuple(dict.fromkeys(axis for m in report.measurements for axis, _ in m.case.levels))
    out = io.StringIO()
    writer = table.writer(out, lineterminator="\n")
    names = list(_FIXED)
    for axis in axes:
        names.append(_column(inert(axis), names))
    writer.writerow(names)
    for m in report.measurements:
        writer.writerow([*_fixed(m), *(inert(m.case.level(axis)) for axis in axes)])
    return out.getvalue()


def _column(axis: str, others: Collection[str]) -> str:
    while axis in others:
        axis += "_level"
    return axis


def _fixed(m: Measurement) -> list[object]:
    ceilings: list[object] = []
    for kind in ("measured", "nominal"):
        found = share_of(m, kind)
        ceilings += ("", "", "") if found is None else (found.ceiling, found.value, inert(found.of))
    names = [inert(word) for word in (m.case.probe, m.metric, m.unit)]
    numbers = [m.count, m.median, m.low, m.high, m.best, "yes" if m.ceiling else "no"]
    trust = ["yes" if m.trust.good else "no", inert("; ".join(m.trust.marks))]
    return [*names, *numbers, *ceilings, *trust]


def inert(word: str) -> str:
    """Text that no spreadsheet interprets as a formula; numbers stay numbers."""
    clean = word.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
    if as_number(clean) is None and clean.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + clean
    return clean
