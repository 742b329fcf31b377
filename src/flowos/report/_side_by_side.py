"""Two runs or many, of one machine or several: their headlines and charts with a series each."""

import json
import math
from collections.abc import Iterator, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.model import Case, Chart, Measurement, Verdict, lower_is_better, to_json
from flowos.report._panels import as_number, best_of, headlines_of
from flowos.report._report import Report, Section
from flowos.report._words import rule_of

FORMAT, SCHEMA = "flowos-side-by-side", 1
OTHER_SETTING = "another setting was the best one, so that it is not judged"
RUN = "run"
"""The axis of runs in combined charts."""
_COUNTS = ("cores", "threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run next to others.

    label: its name among them. source: the file that it was read from; "" for the store.
    unlike: in what it differs from the first, so that it is not judged. verdicts: on the numbers
    that both have, where it is.
    """

    label: str
    machine: str
    report: Report
    source: str = ""
    unlike: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """differences: what is known of the runs and not the same in all: name -> value in each."""

    runs: tuple[ReportedRun, ...]
    differences: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.machine for run in self.runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineCell:
    """A headline of one run. measured: None if it has none, and `why` says why.

    ratio: how good it is over that of the first run, below 1 is worse; nan if one has no number.
    answer: "" if it is not judged; why: the reason of the answer, or of none.
    """

    run: ReportedRun
    measured: Measurement | None
    ratio: float = math.nan
    answer: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineRow:
    """A headline in all runs, in their order."""

    label: str
    probe: str
    cells: tuple[HeadlineCell, ...]

    @property
    def measured(self) -> tuple[Measurement, ...]:
        return tuple(cell.measured for cell in self.cells if cell.measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedChart:
    """A chart for one metric, with a series for each run: its best setting at each point."""

    section: Section
    chart: Chart
    report: Report


_Key = tuple[str, str, str, str]
"""Probe, label, metric, unit: headlines that are the same, whatever setting was the best."""


def headline_rows(shown: SideBySide) -> tuple[HeadlineRow, ...]:
    """All headlines that any of the runs has, those of a probe together."""
    found: dict[_Key, dict[int, Measurement]] = {}
    for number, run in enumerate(shown.runs):
        for label, m in _headlines(run.report):
            found.setdefault((m.case.probe, label, m.metric, m.unit), {})[number] = m
    probes = list(dict.fromkeys(key[0] for key in found))
    return tuple(
        _row(shown, key, found[key]) for key in sorted(found, key=lambda key: probes.index(key[0]))
    )


def _headlines(report: Report) -> Iterator[tuple[str, Measurement]]:
    """With the commands of the user, of which two runs seldom time the same."""
    request = report.run.request
    of = f": {', '.join(request.subject)}" if len(request.commands) == 1 else ""
    yield from ((f"{h.label}{of}", h.measured) for h in headlines_of(report))


def _row(shown: SideBySide, key: _Key, found: dict[int, Measurement]) -> HeadlineRow:
    base = found.get(0)
    cells = (_cell(run, found.get(i), base, key[0]) for i, run in enumerate(shown.runs))
    return HeadlineRow(label=key[1], probe=key[0], cells=tuple(cells))


def _cell(
    run: ReportedRun, m: Measurement | None, base: Measurement | None, probe: str
) -> HeadlineCell:
    if m is None:
        return HeadlineCell(run=run, measured=None, why=_lacking(run.report, probe))
    if base is None or m is base:
        return HeadlineCell(run=run, measured=m)
    answer, why = _answer(run, m, base)
    return HeadlineCell(run=run, measured=m, ratio=_ratio(base, m), answer=answer, why=why)


def _lacking(report: Report, probe: str) -> str:
    """The reason of the probe, if it has no number at all."""
    if any(m.case.probe == probe for m in report.measurements):
        return "not measured"
    reasons = (why.reason for case, why in report.run.unmeasured if case.probe == probe)
    return next(reasons, "not measured")


def _ratio(base: Measurement, other: Measurement) -> float:
    better, worse = (base, other) if lower_is_better(base.unit) else (other, base)
    both = min(better.value, worse.value)
    return better.value / worse.value if 0 < both < math.inf else math.nan


def _answer(run: ReportedRun, m: Measurement, base: Measurement) -> tuple[str, str]:
    if run.unlike:
        return "", f"not judged, as they differ in {', '.join(run.unlike)}"
    if m.case != base.case:
        return "", OTHER_SETTING
    at = (m.case.probe, m.case.levels, m.metric)
    fitting = (v for v in run.verdicts if (v.probe, v.rest, v.metric) == at)
    found = next(fitting, None)
    return (found.answer, found.why) if found else ("", "")


def combined_charts(shown: SideBySide) -> tuple[tuple[str, tuple[CombinedChart, ...]], ...]:
    """By title of the section: the charts of all runs, each title once."""
    found: dict[str, dict[tuple[str, str], tuple[Section, Chart]]] = {}
    for run in shown.runs:
        for section in run.report.sections:
            charts = found.setdefault(section.title, {})
            for chart in section.charts:
                for metric in chart.metrics:
                    charts.setdefault((chart.title, metric), (section, _of_metric(chart, metric)))
    combined = (
        (title, tuple(filter(None, (_combined(shown, *each) for each in charts.values()))))
        for title, charts in found.items()
    )
    return tuple((title, charts) for title, charts in combined if charts)


def _of_metric(chart: Chart, metric: str) -> Chart:
    several = len(chart.metrics) > 1
    return replace(
        chart,
        title=f"{chart.title}, {metric.replace('_', ' ')}" if several else chart.title,
        metrics=(metric,),
        series=(RUN,),
        ceilings=chart.ceilings and chart.kind == "bars",
    )


def _combined(shown: SideBySide, section: Section, chart: Chart) -> CombinedChart | None:
    rows = tuple(_reduced(list(_with_run(shown, section.probe, chart)), chart))
    if not rows:
        return None
    section = replace(section, charts=(chart,))
    report = Report(run=shown.runs[0].report.run, measurements=rows, sections=(section,))
    return CombinedChart(section=section, chart=chart, report=report)


def _with_run(shown: SideBySide, probe: str, chart: Chart) -> Iterator[Measurement]:
    """The numbers of all runs, each at its run; all cores are the same level on all machines."""
    by_run = [
        [m for m in run.report.measurements if (m.case.probe, m.metric) == (probe, *chart.metrics)]
        for run in shown.runs
    ]
    counts = [axis for axis in chart.facets if axis in _COUNTS]
    most = {axis: [_most(rows, axis) for rows in by_run] for axis in counts}
    for number, (run, rows) in enumerate(zip(shown.runs, by_run, strict=True)):
        for m in rows:
            env = m.case.level("env")
            levels = {RUN: f"{run.label}, {env}" if env else run.label}
            for axis in counts:
                every = most[axis]
                if len({n for n in every if n}) > 1 and m.case.level(axis) == every[number]:
                    levels[axis] = "all"
            yield replace(m, case=m.case.at(**levels))


def _most(rows: Sequence[Measurement], axis: str) -> str:
    return max((m.case.level(axis) for m in rows), key=lambda n: as_number(n) or 0.0, default="")


def _reduced(rows: Sequence[Measurement], chart: Chart) -> Iterator[Measurement]:
    """The best at each point of each series."""
    found: dict[tuple[str, ...], list[Measurement]] = {}
    for m in rows:
        point = tuple(m.case.level(axis) for axis in (RUN, *chart.facets, chart.x))
        found.setdefault(point, []).append(m)
    yield from map(best_of, found.values())


def side_by_side_json(shown: SideBySide) -> str:
    """SI base units; null is a number that is not known. Runs are named by their place, from 0."""
    places = {run.label: number for number, run in enumerate(shown.runs)}
    whole = {
        "format": FORMAT,
        "schema": SCHEMA,
        "rule": rule_of(shown.runs[0].report.run),
        "runs": [_run_json(run) for run in shown.runs],
        "differences": {name: list(values) for name, values in shown.differences},
        "headlines": [_row_json(row, places) for row in headline_rows(shown)],
        "charts": [_chart_json(chart) for _, charts in combined_charts(shown) for chart in charts],
    }
    return json.dumps(whole, allow_nan=False, indent=1) + "\n"


def _run_json(run: ReportedRun) -> dict[str, object]:
    of = run.report.run
    return {
        "label": run.label,
        "id": of.id,
        "machine": run.machine,
        "processor": of.facts.cpu_model,
        "started": of.started,
        "effort": of.request.effort,
        "version": of.version,
        "source": run.source,
        "unlike": list(run.unlike),
    }


def _row_json(row: HeadlineRow, places: dict[str, int]) -> dict[str, object]:
    cells = [
        {
            "run": places[cell.run.label],
            "measured": to_json(cell.measured),
            "ratio": to_json(cell.ratio),
            "answer": cell.answer,
            "why": cell.why,
        }
        for cell in row.cells
    ]
    return {"label": row.label, "probe": row.probe, "runs": cells}


def _chart_json(combined: CombinedChart) -> dict[str, object]:
    return {
        "probe": combined.section.probe,
        "title": combined.chart.title,
        "x": combined.chart.x,
        "numbers": to_json(combined.report.measurements),
    }


def heading_of(case: Case) -> str:
    """The settings with which a headline was measured."""
    return ", ".join(f"{axis} {level}" for axis, level in case.levels if level)
