"""The page of a suite: the paper's figures in its order, with our charts and both numbers."""

from collections.abc import Iterator

from flowos.model import Facts, Unmeasured, counted
from flowos.report._comparison_table import grouped
from flowos.report._comparison_table import summary as answers
from flowos.report._suite import (
    NumberRow,
    ShownPart,
    SuiteFigure,
    SuiteReport,
    named,
    number_rows,
    shown_parts,
)
from flowos.report._suite_text import (
    published_value,
    ratio_text,
    share_here,
    share_there,
    summary,
    where,
    why_none_text,
)
from flowos.report._words import case_text, facts_rows, machine_line, remedy_of, value_of
from flowos.report.page._comparison_table import verdict_table
from flowos.report.page._head import document
from flowos.report.page._lists import gaps, untrusted
from flowos.report.page._marks import people, words
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._page import charts_of
from flowos.report.page._tables import scrolled

_NUMERIC = ("published", "of its nominal", "here", "of measured ceiling", "here / published")
_OURS = "which of ours, or why none"
_PROSE = (_OURS, "where it stands")
_HOW_TO_READ = (
    "How to read this: published numbers stand in the text or the tables of the paper; none was"
    " read off a plot, so that many figures have none. The machines differ, so a ratio says how"
    " they compare and not whether a setting is right: for that see the shares. Ours is the median"
    " of the best setting that was measured for the figure, in the first environment. A nominal"
    " value is the paper's; a measured ceiling was measured in the same run."
)


def suite_html(report: SuiteReport) -> str:
    """One self-contained page: inline style and SVG, no script, nothing loaded."""
    links = [_link(f"f{n}", named(f.figure)) for n, f in enumerate(report.figures)]
    return document(
        f"{report.suite.name}: {report.suite.title}, repeated by FlowOS",
        tag(
            "header",
            tag("p", tag("b", "FlowOS"), " repeated the measurements of a paper", class_="kicker"),
            tag("h1", report.suite.title),
            tag("p", f"{report.paper.citation}.", class_="deck"),
            tag("p", tag("strong", f"{summary(report)}."), class_="lede"),
            tag("nav", tag("ul", *links, _link("machines", "Machines")), aria_label="Contents"),
        ),
        tag(
            "main",
            *(_figure(report, each, f"f{n}") for n, each in enumerate(report.figures)),
            _machines(report),
            id="main",
        ),
        tag("footer", tag("p", _HOW_TO_READ), tag("p", *_runs(report))),
        skip="Skip to the figures",
    )


def _link(name: str, words_: str) -> Markup:
    return tag("li", tag("a", words_, href=f"#{name}"))


def _figure(report: SuiteReport, figure: SuiteFigure, name: str) -> Markup:
    parts = shown_parts(figure)
    return _section(
        name,
        f"{named(figure.figure)}: {figure.figure.title}",
        tag("p", figure.figure.caption, class_="note", lang="ja"),
        *_said(figure, bool(parts)),
        *(_part(part, f"{name}-{n}") for n, part in enumerate(parts)),
        *_findings(figure),
        gaps(figure.gaps),
        _numbers(report, figure, f"{name}-n"),
    )


def _section(name: str, title: str, *content: Markup | None) -> Markup:
    heading = tag("h2", title, id=f"{name}-h")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-h")


def _said(figure: SuiteFigure, measured: bool) -> Iterator[Markup]:
    """What was run instead, what is still to be, and what is lacking."""
    if measured and figure.figure.instead:
        yield tag("p", tag("b", "Run here: "), words(figure.figure.instead), ".")
    for probe, how in figure.unfinished:
        yield tag("p", tag("b", f"{probe}: "), f"{how}.")
    for probe, why in figure.waiting:
        yield tag("p", tag("b", f"No number yet ({probe}): "), *_reason(why))
    for probe, why in figure.lacking:
        of = f" ({probe})" if probe else ""
        yield tag("p", tag("b", f"Not here{of}: "), *_reason(why))


def _reason(why: Unmeasured) -> Iterator[Markup]:
    yield join(words(why.reason), ".")
    if why.remedy:
        yield join(" To mend it: ", words(remedy_of(why.remedy)), ".")


def _part(part: ShownPart, name: str) -> Markup:
    tables = [verdict_table(g, f"{name}-v{n}") for n, g in enumerate(grouped(part.verdicts))]
    shown = charts_of(part.report, part.section, name)
    if shown is None:
        rows = (
            tag("li", f"{case_text(m.case)}: {m.metric} {value_of(m)}")
            for m in part.report.measurements
        )
        shown = tag("ul", *rows, class_="plain")
    doubts = untrusted(part.report) if part.report.untrusted else None
    return join(shown, doubts, *_compared(part, tables))


def _compared(part: ShownPart, tables: list[Markup]) -> Iterator[Markup]:
    """Environments with how they compare in short; settings in a foldable list."""
    if tables and part.report.run.environments:
        yield tag("p", f"Between environments: {answers(part.verdicts)}.", class_="note")
        yield from tables
    elif tables:
        yield _folded(tables)


def _folded(tables: list[Markup]) -> Markup:
    return tag("details", tag("summary", "What each setting is worth"), *tables)


def _findings(figure: SuiteFigure) -> Iterator[Markup]:
    """Of each probe what the reports of its runs find in these numbers."""
    for probe in dict.fromkeys(probe for probe, _ in figure.findings):
        rows = (tag("li", words(said)) for of, said in figure.findings if of == probe)
        yield tag("h3", f"Findings of {probe}")
        yield tag("ul", *rows, class_="plain")


def _numbers(report: SuiteReport, figure: SuiteFigure, name: str) -> Markup:
    rows = number_rows(report, figure)
    if not rows:
        return tag("p", "The paper's text has no number for it.", class_="note")
    cells = [_cells(row, figure) for row in rows]
    used = [column for column in cells[0] if any(each[column] for each in cells)]
    body = [
        _row([each[column] for column in used], used, row)
        for each, row in zip(cells, rows, strict=True)
    ]
    caption = f"{counted(len(rows), 'published number')}, and what was measured here"
    return scrolled(caption, used, body, name, "comparison", _NUMERIC)


def _cells(row: NumberRow, figure: SuiteFigure) -> dict[str, str]:
    """Column -> text; those that are empty in all rows are left out."""
    ours = row.ours
    trust = "" if ours is None or ours.trust.good else "; not to be trusted: its table says why"
    return {
        "in the paper": row.published.what,
        "on": row.published.machine,
        "published": published_value(row),
        "of its nominal": share_there(row),
        "here": value_of(ours) if ours else "",
        "of measured ceiling": share_here(row),
        "here / published": ratio_text(row),
        _OURS: f"{case_text(ours.case)}{trust}" if ours else why_none_text(row, figure),
        "where it stands": f"{row.published.where}: {row.published.printed}",
    }


def _row(cells: list[str], columns: list[str], row: NumberRow) -> Markup:
    first, *rest = cells
    doubted = row.ours is not None and not row.ours.trust.good
    kinds = {
        **dict.fromkeys(_PROSE, "wrap"),
        **dict.fromkeys(_NUMERIC, "n"),
        **({_OURS: "warn wrap"} if doubted else {}),
    }
    named_cells = (
        tag("td", words(cell) if column in _PROSE else people(cell), class_=kinds.get(column))
        for cell, column in zip(rest, columns[1:], strict=True)
    )
    return tag("tr", tag("th", first, scope="row"), *named_cells)


def _machines(report: SuiteReport) -> Markup:
    theirs = [
        join(tag("dt", machine.name), tag("dd", f"{machine.hardware} ({machine.where})"))
        for machine in report.paper.machines
    ]
    ours = {run_report.run.host: run_report.run.facts for run_report in report.reports}
    here = [
        join(
            tag("h3", f"Here: {host}, {machine_line(facts)}"),
            tag("dl", *_facts(facts), class_="facts"),
        )
        for host, facts in ours.items()
    ]
    return _section(
        "machines",
        "Machines",
        tag("h3", "In the paper"),
        tag("dl", *theirs, class_="facts"),
        tag("p", report.paper.missing, class_="note"),
        *here,
    )


def _facts(facts: Facts) -> Iterator[Markup]:
    for what, value in facts_rows(facts):
        yield join(tag("dt", what), tag("dd", value))


def _runs(report: SuiteReport) -> Iterator[str]:
    runs = "; ".join(f"{run_report.run.id}{where(run_report.run)}" for run_report in report.reports)
    yield f"Suite {report.of}" + (f", runs {runs}." if runs else ", no run yet.")
