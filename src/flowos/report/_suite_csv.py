"""A suite as one table for spreadsheets: the paper's numbers, ours, and why there is none."""

import csv as table
import io
from collections.abc import Iterator
from typing import Any

from flowos.model import Measurement, Unmeasured
from flowos.report._csv import inert
from flowos.report._suite import NumberRow, SuiteFigure, SuiteReport, number_rows, shown_parts
from flowos.report._words import case_text

_COLUMNS = (
    *("figure", "title", "what", "probe", "metric", "unit"),
    *("published", "printed", "machine", "source", "nominal"),
    *("measured", "low", "high", "ratio", "case", "trusted", "marks"),
    *("not_measured", "remedy"),
)
_Cells = dict[str, Any]
"""Column -> what it has; the others are empty."""


def suite_csv(report: SuiteReport) -> str:
    """SI base units; empty cells for what is not known (RFC 4180).

    A row for each number of the paper, then for each of ours that no such row has, then for each
    probe without a number, or the figure, with the reason, then for each case that failed.
    """
    out = io.StringIO()
    writer = table.DictWriter(out, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for figure in report.figures:
        of = {"figure": figure.figure.number, "title": figure.figure.title}
        for cells in _rows(report, figure):
            whole = {**of, **cells}
            writer.writerow({c: inert(v) if isinstance(v, str) else v for c, v in whole.items()})
    return out.getvalue()


def _rows(report: SuiteReport, figure: SuiteFigure) -> Iterator[_Cells]:
    rows = number_rows(report, figure)
    yield from map(_published, rows)
    beside = [row.ours for row in rows]
    ours = dict.fromkeys(m for part in shown_parts(figure) for m in part.report.measurements)
    yield from (_ours(m) for m in ours if m not in beside)
    none = [row for row in rows if row.ours is None]
    said = {(row.published.probe, row.why_none) for row in none}
    said |= {("", row.why_none) for row in none}
    partly = ((probe, Unmeasured(reason=how)) for probe, how in figure.unfinished)
    for probe, why in (*partly, *figure.waiting, *figure.lacking):
        if (probe, why) not in said:
            yield {"probe": probe, **_why(why)}
    for case, why in figure.gaps:
        yield {"probe": case.probe, "case": case_text(case), **_why(why)}


def _published(row: NumberRow) -> _Cells:
    number = row.published
    cells = {
        "what": number.what,
        "probe": number.probe,
        "metric": number.metric,
        "unit": number.unit,
        "published": number.value,
        "printed": number.printed,
        "machine": number.machine,
        "source": number.where,
        "nominal": "" if number.nominal is None else number.nominal,
    }
    if row.ours is None:
        return {**cells, **_why(row.why_none)}
    return {**cells, **_ours(row.ours), "ratio": row.ratio}


def _ours(m: Measurement) -> _Cells:
    return {
        "probe": m.case.probe,
        "metric": m.metric,
        "unit": m.unit,
        "measured": m.value,
        "low": m.low,
        "high": m.high,
        "case": case_text(m.case),
        "trusted": "yes" if m.trust.good else "no",
        "marks": "; ".join(m.trust.marks),
    }


def _why(why: Unmeasured) -> _Cells:
    return {"not_measured": why.reason, "remedy": why.remedy}
