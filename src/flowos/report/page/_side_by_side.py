"""The page of several runs: headlines and charts with a series for each run."""

from collections.abc import Iterator, Sequence

from flowos._dataclasses import replace
from flowos.model import Case, Chart
from flowos.report._report import Report, Section
from flowos.report._side_by_side import (
    RUN,
    CombinedChart,
    HeadlineCell,
    HeadlineRow,
    SideBySide,
    combined_charts,
    heading_of,
    headline_rows,
)
from flowos.report._side_by_side_text import (
    NOTHING_IN_COMMON,
    counts_of,
    judged_of,
    ratio_words,
    rule_of_all,
)
from flowos.report._words import machine_line, share_text, trust_of, value_of
from flowos.report.page._head import document
from flowos.report.page._marks import people
from flowos.report.page._markup import Markup, tag
from flowos.report.page._page import DrawnChart, arranged, chart_of
from flowos.report.page._script import SCRIPT
from flowos.report.page._tables import scrolled

_BEST = "Of each run the best setting at each point; the table has the settings."
_COLUMNS = (
    "headline",
    "run",
    "number",
    "of measured ceiling",
    "over the first",
    "trust",
    "why",
    "with",
)
_HOW_TO_READ = (
    "How to read this: a ratio is how good a number is over that of the first run, below 1 is"
    " worse, whatever the unit. Each run has its own ceilings. An answer such as slower stands only"
    " where both runs are of one kind of machine, were measured in the same way and found the same"
    " setting to be the best. A hollow mark or a triangle is a number that cannot be trusted."
)


def side_by_side_html(shown: SideBySide) -> str:
    """One self-contained page: inline style, SVG and script, nothing loaded."""
    rows = headline_rows(shown)
    sections = [
        _section("headlines", "What each reaches", *_headlines(shown, rows)),
        _section("runs", "The runs", *_runs(shown)),
    ]
    for number, (title, charts) in enumerate(combined_charts(shown)):
        sections.append(_section(f"p{number}", title, _charts(charts, f"p{number}")))
    return document(
        f"{counts_of(shown)} side by side, by FlowOS",
        tag(
            "header",
            tag("p", tag("b", "FlowOS"), " shows runs side by side", class_="kicker"),
            tag("h1", _title(shown)),
            tag("p", f"{counts_of(shown)}.", class_="deck"),
            *(tag("p", sentence, class_="lede") for sentence in judged_of(shown)),
        ),
        tag("main", *sections, id="main"),
        tag("footer", tag("p", _HOW_TO_READ), tag("p", rule_of_all(shown))),
        skip="Skip to the numbers",
        script=SCRIPT,
    )


def _title(shown: SideBySide) -> str:
    return " and ".join(dict.fromkeys(run.report.run.facts.cpu_model for run in shown.runs))


def _section(name: str, title: str, *content: Markup | None) -> Markup:
    heading = tag("h2", title, id=f"{name}-h")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-h")


def _headlines(shown: SideBySide, rows: Sequence[HeadlineRow]) -> Iterator[Markup | None]:
    if all(len(row.measured) < 2 for row in rows):
        yield tag("p", NOTHING_IN_COMMON, class_="note")
    drawn = (_headline(shown, row, f"h{number}") for number, row in enumerate(rows))
    yield arranged(list(filter(None, drawn)))
    if rows:
        cells = [_row(row, cell) for row in rows for cell in row.cells]
        table = scrolled("Each headline in each run", _COLUMNS, cells, "headlines-n", "comparison")
        yield tag("details", tag("summary", "Ratios, and why some are not judged"), table)


def _headline(shown: SideBySide, row: HeadlineRow, name: str) -> DrawnChart | None:
    """A bar for each run that has the number, under its ratio."""
    lacking = [f"{cell.run.label} ({cell.why})" for cell in row.cells if cell.measured is None]
    chart = Chart(
        title=row.label,
        kind="bars",
        x=RUN,
        metrics=(row.measured[0].metric,),
        about=f"Not in {'; '.join(lacking)}." if lacking else "",
    )
    measured = tuple(
        replace(cell.measured, case=Case(row.probe, ((RUN, _heading(cell)),)))
        for cell in row.cells
        if cell.measured
    )
    section = Section(probe=row.probe, title=row.label, charts=(chart,))
    report = Report(run=shown.runs[0].report.run, measurements=measured)
    return chart_of(report, section, chart, name)


def _heading(cell: HeadlineCell) -> str:
    words = ratio_words(cell)
    return f"{cell.run.label}: {words}" if words else cell.run.label


def _row(row: HeadlineRow, cell: HeadlineCell) -> Markup:
    m = cell.measured
    trusted = m is None or m.trust.good
    words = ratio_words(cell)
    return tag(
        "tr",
        tag("th", row.label, scope="row"),
        tag("td", cell.run.label),
        tag("td", people(value_of(m)) if m else "-", class_="n"),
        tag("td", people(share_text(m, "measured")) if m else "", class_="n"),
        tag("td", words, class_={"slower": "warn", "faster": "good"}.get(cell.answer)),
        tag("td", trust_of(m) if m else "", class_=None if trusted else "warn"),
        tag("td", cell.why),
        tag("td", heading_of(m.case) if m else ""),
    )


def _runs(shown: SideBySide) -> Iterator[Markup]:
    names = ("run", "machine", "measured", "id", "effort", "from")
    rows = [
        tag(
            "tr",
            tag("th", run.label, scope="row"),
            tag("td", f"{run.report.run.facts.cpu_model}, {machine_line(run.report.run.facts)}"),
            tag("td", run.report.run.started),
            tag("td", run.report.run.id),
            tag("td", run.report.run.request.effort),
            tag("td", run.source or "the store"),
        )
        for run in shown.runs
    ]
    yield scrolled("The runs, in the order given", names, rows, "runs-n", "comparison")
    if shown.differences:
        columns = ("what", *(run.label for run in shown.runs))
        found = [
            tag("tr", tag("th", name, scope="row"), *(tag("td", v or "none") for v in values))
            for name, values in shown.differences
        ]
        yield scrolled("What is not the same in all", columns, found, "runs-d", "comparison")


def _charts(charts: Sequence[CombinedChart], name: str) -> Markup | None:
    drawn = (
        chart_of(each.report, each.section, _with_rule(each.chart), f"{name}-{number}")
        for number, each in enumerate(charts)
    )
    return arranged(list(filter(None, drawn)))


def _with_rule(chart: Chart) -> Chart:
    return replace(chart, about=" ".join(filter(None, (chart.about, _BEST))))
