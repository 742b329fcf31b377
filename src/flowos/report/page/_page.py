"""The page: the machine, its performance, trust, and every number."""

from collections.abc import Iterator, Sequence

from flowos._dataclasses import dataclass
from flowos.model import Chart, Missing, Roofline, counted
from flowos.report import _units
from flowos.report._comparison_table import grouped, summary
from flowos.report._matrix import matrix_of
from flowos.report._panels import Line, Panel, best_of, panels_of
from flowos.report._report import Report, Section
from flowos.report._roofline import panel_of
from flowos.report._usual import TITLE
from flowos.report._words import (
    early_of,
    facts_rows,
    gain_of,
    is_comparison,
    machine_line,
    nothing_to_do,
    remedy_of,
    rule_of,
    value_of,
    verdicts_title,
    why_of,
)
from flowos.report.page._bars import bars
from flowos.report.page._cards import cards
from flowos.report.page._comparison_table import verdict_table
from flowos.report.page._curve import curve
from flowos.report.page._head import FILE, Frame, document
from flowos.report.page._lists import gaps, untrusted
from flowos.report.page._marks import people, swatch, words
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._matrix import heat_map
from flowos.report.page._roofline import roofline_curve
from flowos.report.page._script import SCRIPT
from flowos.report.page._tables import panel_table, scrolled
from flowos.report.page._usual import places


def html(report: Report, *, frame: Frame = FILE) -> str:
    """One self-contained page: inline style, SVG and script, nothing loaded."""
    parts = [part for part in _parts(report) if part is not None]
    return document(
        f"{report.run.facts.cpu_model} on {report.run.host}, measured by FlowOS",
        _masthead(report, [(name, title) for name, title, _ in parts]),
        tag("main", *(content for _, _, content in parts), id="main"),
        _footer(report),
        skip="Skip to the numbers",
        frame=frame,
        script=SCRIPT,
    )


def html_cell(report: Report) -> str:
    """The page for a notebook, in a frame: neither one's style reaches the other."""
    return tag(
        "iframe",
        srcdoc=html(report),
        sandbox="allow-scripts",  # of which the page's policy allows its own
        title="FlowOS report",
        style="width:100%;height:32rem;border:0;resize:vertical",
    )


PagePart = tuple[str, str, Markup]
"""Anchor, title in the table of contents, content."""


def _parts(report: Report) -> Iterator[PagePart | None]:
    yield _advice(report)
    shown = cards(report)
    rule = tag("p", rule_of(report.run), class_="note") if shown else None
    yield _part("headlines", "Headlines", "What it reaches", rule, shown)
    yield _part("usual", "Is this normal?", TITLE, places(report))
    if is_comparison(report.run):
        yield _tuning_gain(report)
    yield _rooflines(report)
    yield _trust(report)
    for number, section in enumerate(report.sections):
        yield _section(report, section, f"p{number}")
    if not is_comparison(report.run):
        yield _tuning_gain(report)
    yield _machine(report)


def _part(name: str, short: str, title: str, *content: Markup | None) -> PagePart | None:
    if all(part is None for part in content):
        return None
    heading = tag("h2", title, id=f"{name}-h")
    return name, short, tag("section", heading, *content, id=name, aria_labelledby=f"{name}-h")


def _masthead(report: Report, contents: list[tuple[str, str]]) -> Markup:
    run = report.run
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title in contents]
    return tag(
        "header",
        tag(
            "p",
            tag("b", "FlowOS"),
            f" measured this machine, {_when(run.started)}",
            class_="kicker",
        ),
        tag("h1", run.facts.cpu_model),
        tag("p", f"{run.host}: {machine_line(run.facts)}.", class_="deck"),
        tag("p", *_lede(report), class_="lede"),
        tag("nav", tag("ul", *links), aria_label="Contents") if links else None,
    )


def _when(started: str) -> str:
    """ISO 8601 in a readable form; other texts unchanged."""
    date, t, rest = started.partition("T")
    return f"{date} at {rest[:5]} UTC" if t and rest.endswith(("Z", "+00:00")) else started


def _lede(report: Report) -> Iterator[str]:
    total, untrusted = len(report.measurements), len(report.untrusted)
    if not total:
        yield "Nothing was measured."
        return
    yield counted(total, "number") + ". "
    if untrusted:
        count = "None of them can" if untrusted == total else f"{untrusted} of them cannot"
        yield join(tag("strong", f"{count} be trusted", class_="warn"), ", and each says why.")
        if untrusted * 2 > total:
            yield " Measure again when nothing else uses the machine."
    else:
        yield tag("strong", "All of them can be trusted.", class_="good")
    gaps_found = len(report.run.unmeasured)
    if gaps_found:
        yield f" {counted(gaps_found, 'case')} could not be measured."
    if early := early_of(report.run):
        yield f" {early}."


def _advice(report: Report) -> PagePart | None:
    if report.advice is None:
        return None
    if not report.advice:
        return _part("do", "Do this", "Do this", tag("p", words(nothing_to_do(report.undecided))))
    rows = (
        tag(
            "li",
            tag("b", gain_of(each)),
            tag("div", words(each.do), tag("p", why_of(each), class_="note")),
        )
        for each in report.advice
    )
    return _part("do", "Do this", "Do this", tag("ol", *rows, class_="do"))


def _trust(report: Report) -> PagePart | None:
    title = "What not to believe, and what is missing"
    found = [part for part in (untrusted(report), gaps(report.run.unmeasured)) if part is not None]
    if not found:
        return None
    return _part("trust", "Trust and gaps", title, tag("div", *found, class_="two"))


def _section(report: Report, section: Section, name: str) -> PagePart | None:
    return _part(name, section.title, section.title, charts_of(report, section, name))


def charts_of(report: Report, section: Section, name: str) -> Markup | None:
    """The charts of a section that have numbers; None if none has."""
    drawn = (chart_of(report, section, c, f"{name}-{i}") for i, c in enumerate(section.charts))
    return arranged([chart for chart in drawn if chart is not None])


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart with its heading. figures: of how many panels."""

    markup: Markup
    figures: int


def chart_of(report: Report, section: Section, chart: Chart, name: str) -> DrawnChart | None:
    """A chart of a section; None if it has no number."""
    found = panels_of(report, section, chart)
    if not found:
        return None
    return _drawn(found[0], [_figure(panel, f"{name}-{j}") for j, panel in enumerate(found)])


def _drawn(panel: Panel, figures: Sequence[Markup]) -> DrawnChart:
    """One chart of these figures, all of the same chart as the panel."""
    chart = panel.chart
    about = tag("p", chart.about, class_="note") if chart.about else None
    plots = tag("div", *figures, class_="plots") if len(figures) > 1 else figures[0]
    kind = "chart wide" if len(figures) > 1 else "chart"
    return DrawnChart(tag("div", tag("h3", chart.title), about, plots, class_=kind), len(figures))


def arranged(charts: Sequence[DrawnChart]) -> Markup | None:
    """Charts in columns; a single one in the whole width. None without any."""
    if not charts:
        return None
    alone = len(charts) == 1 and charts[0].figures == 1
    kind = "charts alone" if alone else "charts"
    return tag("div", *(chart.markup for chart in charts), class_=kind)


def _rooflines(report: Report) -> PagePart | None:
    drawn = [
        _drawn(panel := panel_of(each), (_figure(panel, f"roofline-{i}", each),))
        for i, each in enumerate(report.rooflines)
    ]
    return _part("roofline", "Roofline", "Kernels under their roofs", arranged(drawn))


def _figure(panel: Panel, name: str, roofline: Roofline | None = None) -> Markup:
    heading = tag("h4", panel.title) if panel.title else None
    if not panel.lines:
        drawn = tag("p", "No number of this could be drawn; see the table.", class_="note")
    elif roofline:
        drawn = roofline_curve(roofline, panel, name)
    elif panel.chart.kind == "curve":
        drawn = curve(panel, name)
    elif panel.chart.kind == "matrix":
        drawn = heat_map(matrix_of(panel), f"{name}-m")
    else:
        drawn = bars(panel, name)
    named = [part for part in (heading, _legend(panel)) if part is not None]
    caption = tag("figcaption", *named) if named else None
    return tag("figure", caption, drawn, panel_table(panel, f"{name}-n"))


def _legend(panel: Panel) -> Markup | None:
    curved = panel.chart.kind == "curve"
    if panel.chart.kind == "matrix" or (len(panel.lines) < 2 and not panel.context):
        return None
    places = len({x for each in panel.lines for x, _ in each.points})
    items = [_legend_item(panel, each, places) for each in panel.lines]
    if panel.context:
        shown = "in grey" if curved else "in the table only"
        items.append(tag("li", f"{len(panel.context)} more {shown}", class_="note"))
    return tag("ul", *items, class_="legend")


def _legend_item(panel: Panel, each: Line, places: int) -> Markup:
    """The line's name with its best number, and the position if the line is a single point."""
    curved = panel.chart.kind == "curve"
    marked = swatch(each.colour, bar=not curved and not panel.chart.log_y)
    if not curved:
        return tag("li", marked, tag("span", each.label), class_=f"k{each.colour}")
    best = people(value_of(best_of(m for _, m in each.points), panel.scale))
    lone = len(each.points) == 1 < places
    where = f", at {panel.chart.x} {each.points[0][0]} only" if lone else None
    label = tag("span", each.label, " best ", tag("b", best), where)
    return tag("li", marked, label, class_=f"k{each.colour}")


def _tuning_gain(report: Report) -> PagePart | None:
    findings = tag("ul", *(tag("li", words(f)) for f in report.findings), class_="plain")
    tables = [verdict_table(g, f"verdicts-{i}") for i, g in enumerate(grouped(report.verdicts))]
    counts = tag("p", f"{summary(report.verdicts)}.", class_="note")
    found = findings if report.findings else None
    compared = join(counts, *tables) if tables else None
    if report.run.environments or report.run.request.commands:
        title = verdicts_title(report.run)
        return _part("worth", title, title, compared, found)
    title = "What to change, and what it is worth"
    return _part("worth", "What settings are worth", title, found, compared)


def _machine(report: Report) -> PagePart | None:
    facts = report.run.facts
    rows = [join(tag("dt", what), tag("dd", value)) for what, value in facts_rows(facts)]
    if report.steps:
        found = ", ".join(f"{s.label} at {_units.size(s.at)}" for s in report.steps)
        rows.append(join(tag("dt", "Steps that were measured"), tag("dd", found)))
    missing = [_missing(m) for m in facts.missing]
    caption = "What could not be found out"
    names = ("what", "what is lost", "to mend it")
    unknown = scrolled(caption, names, missing, "unknown") if missing else None
    listed = tag("dl", *rows, class_="facts")
    return _part("machine", "The machine", "The machine", listed, unknown)


def _missing(m: Missing) -> Markup:
    remedy = words(remedy_of(m.remedy))
    cells = (tag("th", m.what, scope="row"), tag("td", m.loses), tag("td", remedy))
    return tag("tr", *cells)


def _footer(report: Report) -> Markup:
    return tag(
        "footer",
        tag(
            "p",
            "How to read this: the middle half of the repetitions lies between the two values "
            "next to a number. A measured ceiling was measured on this machine in the same run; a "
            "nominal one is what data sheets promise. A hollow mark or a triangle is a number that "
            "cannot be trusted, and its table says why. Intervals are 95 %.",
        ),
        tag("p", f"Run {report.run.id}, FlowOS {report.run.version}."),
    )
