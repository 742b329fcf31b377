"""A suite as it was measured: each figure of the paper with our numbers next to those published."""

import json as text_of
import math
from collections.abc import Iterator

from flowos._dataclasses import dataclass, replace
from flowos.model import (
    Case,
    Facts,
    FigurePart,
    Measurement,
    Paper,
    PaperFigure,
    PaperSuite,
    PublishedNumber,
    Unmeasured,
    Verdict,
    to_json,
)
from flowos.report._panels import best_of
from flowos.report._report import Report, Section
from flowos.report._unlike import level_of, why_unlike

_FORMAT, _SCHEMA = "flowos-suite", 1
_MEASURED = Unmeasured(reason="")
_NO_PROBE = Unmeasured(reason="no probe of FlowOS measures it")
_NONE_ALIKE = Unmeasured(reason="no case that was measured is like it")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFigure:
    """A figure, and the runs that show it.

    lacking: what cannot be measured here, (probe, or compiler, or "", why). waiting: probes that
    can and have no number yet, and why. partly: of each probe how many cases were measured, and of
    how many. findings: in the numbers of a probe that are shown, (probe, sentence). gaps: cases
    that gave no number, each with why; not those that had no time yet.
    """

    figure: PaperFigure
    lacking: tuple[tuple[str, Unmeasured], ...] = ()
    reports: tuple[Report, ...] = ()
    waiting: tuple[tuple[str, Unmeasured], ...] = ()
    partly: tuple[tuple[str, int, int], ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    gaps: tuple[tuple[Case, Unmeasured], ...] = ()

    @property
    def unfinished(self) -> tuple[tuple[str, str], ...]:
        """Probes that have numbers of some cases only, each with how many these are."""
        return tuple(
            (probe, f"partly measured: {count} of {of} cases; the same command goes on")
            for probe, count, of in self.partly
            if count < of and probe not in dict(self.waiting)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteReport:
    """of: what its runs share in the store."""

    of: str
    suite: PaperSuite
    paper: Paper
    figures: tuple[SuiteFigure, ...]

    @property
    def reports(self) -> tuple[Report, ...]:
        """Of all runs, each once."""
        every = (run_report for figure in self.figures for run_report in figure.reports)
        return tuple({run_report.run.id: run_report for run_report in every}.values())


@dataclass(frozen=True, slots=True)
class ShownPart:
    """Numbers of a run that show a part of a figure, with the charts for them."""

    report: Report
    section: Section
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A published number, and ours of the same kind: the best of those in the figure.

    why_none: why there is none of ours, if there is none. is_unlike: because what was measured for
    it is of another kind.
    """

    published: PublishedNumber
    ours: Measurement | None
    why_none: Unmeasured = _MEASURED
    is_unlike: bool = False

    @property
    def ratio(self) -> float:
        """Ours over the published one; nan without ours."""
        return self.ours.value / self.published.value if self.ours else math.nan


def shown_parts(figure: SuiteFigure) -> tuple[ShownPart, ...]:
    """What of the figure has numbers."""
    return tuple(_shown(figure))


def unmeasured_in(figure: SuiteFigure) -> tuple[tuple[Case, Unmeasured], ...]:
    """Cases that would have given the figure numbers, each once, with why they did not."""
    found = (
        (case, why)
        for part in figure.figure.parts
        for run_report in figure.reports
        if _is_step_of(part, run_report)
        for case, why in run_report.run.unmeasured
        if _may_be_of(part, case, run_report.run.facts)
    )
    return tuple(dict.fromkeys(found))


def may_show(part: FigurePart, case: Case) -> bool:
    """Whether a case has the levels of a part; its program may sweep axes that it does not name."""
    fits = all(case.level(axis, level) == level for axis, level in part.levels)
    return fits and set(part.without).isdisjoint(case.levels)


def number_rows(report: SuiteReport, figure: SuiteFigure) -> tuple[NumberRow, ...]:
    """The numbers of the paper for this figure."""
    measured = [m for part in shown_parts(figure) for m in part.report.measurements]
    return tuple(
        _row(number, measured, report, figure)
        for number in report.paper.numbers
        if number.figure == figure.figure.number
    )


def _row(
    number: PublishedNumber, measured: list[Measurement], report: SuiteReport, figure: SuiteFigure
) -> NumberRow:
    ours = _ours(number, measured, report)
    if ours is not None:
        return NumberRow(number, ours)
    if said := _said(number, report, figure):
        return NumberRow(number, None, said[0])
    bases = _base_environments(report)
    cases = [m.case for m in measured if _is_of(number, m) and m.case.level("env") in bases]
    if unlike := why_unlike(number, cases):
        return NumberRow(number, None, Unmeasured(reason=unlike), is_unlike=True)
    return NumberRow(number, None, _NONE_ALIKE if number.probe else _NO_PROBE)


def _said(
    number: PublishedNumber, report: SuiteReport, figure: SuiteFigure
) -> tuple[Unmeasured, ...]:
    """What is said of its cases, then of its probe, then of the figure.

    Of a number without levels any case would be one of its.
    """
    bases = _base_environments(report)
    return (
        *(
            why
            for run_report in reversed(figure.reports)
            for case, why in run_report.run.unmeasured
            if number.levels and _is_alike(number, case, bases)
        ),
        *(why for probe, why in (*figure.lacking, *figure.waiting) if probe == number.probe),
        *(Unmeasured(reason=how) for probe, how in figure.unfinished if probe == number.probe),
        *(why for probe, why in figure.lacking if not probe),
    )


def figure_name(number: str) -> str:
    """Such as figure 5 or table 2."""
    return number if number.startswith("table ") else f"figure {number}"


def named(figure: PaperFigure) -> str:
    """Such as Figure 5 or Table 2."""
    name = figure_name(figure.number)
    return f"{name[0].upper()}{name[1:]}"


def suite_json(report: SuiteReport) -> str:
    """SI base units; null is a number that is not known."""
    whole = {
        "format": _FORMAT,
        "schema": _SCHEMA,
        "suite": report.suite.name,
        "title": report.suite.title,
        "of": report.of,
        "citation": report.paper.citation,
        "missing": report.paper.missing,
        "machines": to_json(report.paper.machines),
        "runs": [_run(run_report) for run_report in report.reports],
        "figures": [_figure(report, figure) for figure in report.figures],
    }
    return text_of.dumps(whole, allow_nan=False, indent=1, ensure_ascii=False) + "\n"


def _run(run_report: Report) -> dict[str, object]:
    return {"id": run_report.run.id, "host": run_report.run.host, "started": run_report.run.started}


def _figure(report: SuiteReport, figure: SuiteFigure) -> dict[str, object]:
    parts = shown_parts(figure)
    return {
        "number": figure.figure.number,
        "title": figure.figure.title,
        "caption": figure.figure.caption,
        "instead": figure.figure.instead,
        "lacking": _reasons(figure.lacking),
        "waiting": _reasons(figure.waiting),
        "partly": [
            {"probe": p, "measured": n, "cases": of} for p, n, of in figure.partly if n < of
        ],
        "runs": [run_report.run.id for run_report in figure.reports],
        "findings": [{"probe": probe, "finding": said} for probe, said in figure.findings],
        "gaps": [{"probe": c.probe, "case": c.label, **_reason(why)} for c, why in figure.gaps],
        "verdicts": [to_json(v) for part in parts for v in part.verdicts],
        "measurements": [to_json(m) for part in parts for m in part.report.measurements],
        "published": [
            {
                **to_json(row.published),
                "ours": to_json(row.ours),
                "ratio": to_json(row.ratio),
                "unmeasured": None if row.ours else _reason(row.why_none),
            }
            for row in number_rows(report, figure)
        ],
    }


def _reasons(found: tuple[tuple[str, Unmeasured], ...]) -> list[dict[str, str]]:
    return [{"probe": probe, **_reason(why)} for probe, why in found]


def _reason(why: Unmeasured) -> dict[str, str]:
    return {"reason": why.reason, "remedy": why.remedy}


def _shown(figure: SuiteFigure) -> Iterator[ShownPart]:
    for part in figure.figure.parts:
        for run_report in figure.reports:
            numbers = tuple(
                m for m in run_report.measurements if _fits(part, m, run_report.run.facts)
            )
            section = next((s for s in run_report.sections if s.probe == part.probe), None)
            if numbers and section is not None and _is_step_of(part, run_report):
                yield ShownPart(
                    replace(run_report, measurements=numbers),
                    replace(section, charts=tuple(c for c in section.charts if _of(part, c))),
                    tuple(v for v in run_report.verdicts if v.probe == part.probe and _of(part, v)),
                )


def _is_step_of(part: FigurePart, run_report: Report) -> bool:
    """Whether the run is of this part's probe, which others may need as a ceiling."""
    step = run_report.run.request.suite
    return step is not None and step.probe == part.probe


def _of(part: FigurePart, shown: object) -> bool:
    """Is a chart or a verdict of this part's metrics?"""
    metrics = getattr(shown, "metrics", None) or (getattr(shown, "metric", ""),)
    return not part.metrics or not set(part.metrics).isdisjoint(metrics)


def _fits(part: FigurePart, m: Measurement, facts: Facts) -> bool:
    levels = set(m.case.levels)
    return (
        m.case.probe == part.probe
        and m.metric in (part.metrics or (m.metric,))
        and levels.issuperset(part.levels)
        and levels.isdisjoint(part.without)
        and (part.cores == "any" or m.case.level("cores") == _cores(part, facts))
    )


def _may_be_of(part: FigurePart, case: Case, facts: Facts) -> bool:
    """Whether its numbers, had it given any, could be of this part."""
    cores = "" if part.cores == "any" else case.level("cores")
    return case.probe == part.probe and may_show(part, case) and cores in ("", _cores(part, facts))


def _cores(part: FigurePart, facts: Facts) -> str:
    """How many cores are those of one socket, or all, as probes count them."""
    cores = facts.one_per_core
    some = [c for c in cores if part.cores == "all" or c.socket == cores[0].socket]
    quota = len(cores) if facts.quota_cpus is None else max(1, int(facts.quota_cpus))
    return str(min(len(some), quota))


def _ours(
    number: PublishedNumber, measured: list[Measurement], report: SuiteReport
) -> Measurement | None:
    """The best of those alike, in the base environment; a GPU's is not one of processors."""
    bases = _base_environments(report)
    alike = [m for m in measured if _is_of(number, m) and _is_alike(number, m.case, bases)]
    return best_of(alike) if alike and not number.data else None


def _is_of(number: PublishedNumber, m: Measurement) -> bool:
    """Whether it is of the same probe, metric and unit."""
    theirs = (number.probe, number.metric, number.unit)
    return (m.case.probe, m.metric, m.unit) == theirs


def _base_environments(report: SuiteReport) -> set[str]:
    runs = [run_report.run for run_report in report.reports]
    return {run.environments[0].label for run in runs if run.environments} or {""}


def _is_alike(number: PublishedNumber, case: Case, bases: set[str]) -> bool:
    return (
        case.probe == number.probe
        and all(level_of(case, name) == level for name, level in number.levels)
        and case.level("env") in bases
        and case.level("device") != "cpu"
    )
