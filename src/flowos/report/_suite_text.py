"""A suite as it was measured, for a terminal."""

from collections.abc import Iterator

from flowos.model import Run, Unmeasured, counted
from flowos.report._comparison_table import summary as answers
from flowos.report._suite import (
    NumberRow,
    SuiteFigure,
    SuiteReport,
    named,
    number_rows,
    shown_parts,
)
from flowos.report._units import digits, number, share
from flowos.report._words import gaps_of, is_below, remedy_of, share_of, value_of
from flowos.report._wrap import safe, wrapped


def suite_text(report: SuiteReport) -> str:
    """Each figure: what was run, our numbers next to those published, and what is lacking."""
    lines = [
        f"{report.suite.name}: {report.suite.title}",
        *wrapped(f"after: {report.paper.citation}"),
        f"{summary(report)}.",
        "",
        *(line for each in report.figures for line in _figure(report, each)),
    ]
    lines += wrapped(f"In the paper: {report.paper.missing}")
    return "\n".join(map(safe, lines)) + "\n"


def summary(report: SuiteReport) -> str:
    """How many of the figures have numbers of this machine."""
    have = sum(bool(shown_parts(figure)) for figure in report.figures)
    lack = sum(not shown_parts(f) and not f.waiting for f in report.figures)
    waits = len(report.figures) - have - lack
    words = f"{have} of {len(report.figures)} figures have numbers of this machine"
    partly = sum(bool(figure.unfinished) for figure in report.figures)
    words += f", {partly} of them in part" if partly else ""
    words += f"; {lack} cannot be measured here" if lack else ""
    return words + (
        f"; {waits} {'is' if waits == 1 else 'are'} still to be measured" if waits else ""
    )


def where(run: Run) -> str:
    """Which nodes of a pool a run is of; "" of this machine."""
    if run.deployment is None:
        return ""
    names = [node.name for node in run.deployment.nodes[: run.request.nodes]]
    return f", {'on' if len(names) == 1 else 'between'} {', '.join(names)}"


def share_here(row: NumberRow) -> str:
    """Which share of its measured ceiling ours is; "" if none is known or it was not reached."""
    found = share_of(row.ours, "measured") if row.ours else None
    return "" if found is None or is_below(found) else share(found.value)


def share_there(row: NumberRow) -> str:
    """Which share of its nominal value the published number is; "" if the paper has none."""
    nominal = row.published.nominal
    return share(row.published.value / nominal) if nominal else ""


def published_value(row: NumberRow) -> str:
    """The published number as people write it."""
    if row.published.unit == "1" and row.published.printed.endswith("%"):
        return f"{100 * row.published.value:g}%"
    return number(row.published.value, row.published.unit, row.published.metric)


def ratio_text(row: NumberRow) -> str:
    return digits(row.ratio) if row.ours else ""


def why_none_text(row: NumberRow, figure: SuiteFigure) -> str:
    """Why there is none of ours; how to mend it, unless that is said above the row."""
    why = row.why_none
    if row.is_unlike:
        return f"not set against ours: {why.reason}"
    is_above = any(why == said for _, said in (*figure.waiting, *figure.lacking))
    return f"not measured: {why.reason if is_above else _reason(why)}"


def _figure(report: SuiteReport, figure: SuiteFigure) -> Iterator[str]:
    yield from wrapped(f"{named(figure.figure)}: {figure.figure.title}", "", "  ")
    parts = shown_parts(figure)
    for part in parts:
        count = counted(len(part.report.measurements), "number")
        yield f"    {part.section.probe}: {count}, run {part.report.run.id}{where(part.report.run)}"
        if part.report.run.environments and part.verdicts:
            yield from wrapped(
                f"between environments: {answers(part.verdicts)}", "      ", "      "
            )
    if parts and figure.figure.instead:
        yield from wrapped(f"instead: {figure.figure.instead}", "    ", "      ")
    for probe, how in figure.unfinished:
        yield from wrapped(f"{probe}: {how}", "    ", "      ")
    for probe, why in figure.waiting:
        yield from wrapped(f"{probe}: no number yet: {_reason(why)}", "    ", "      ")
    for probe, why in figure.lacking:
        name = f"{probe}: " if probe else ""
        yield from wrapped(f"{name}not here: {_reason(why)}", "    ", "      ")
    for gap in gaps_of(figure.gaps):
        yield from wrapped(f"{gap.what}: not measured: {_reason(gap.why)}", "    ", "      ")
    for row in number_rows(report, figure):
        yield from wrapped(_row(row, figure), "    ", "      ")
    yield ""


def _reason(why: Unmeasured) -> str:
    return why.reason + (f" (to mend it: {remedy_of(why.remedy)})" if why.remedy else "")


def _row(row: NumberRow, figure: SuiteFigure) -> str:
    of = f" ({share_there(row)} of nominal)" if share_there(row) else ""
    said = f"{row.published.what}, {row.published.machine}: {published_value(row)}{of}"
    if row.ours is None:
        return f"{said}; {why_none_text(row, figure)}"
    of = f" ({share_here(row)} of measured ceiling)" if share_here(row) else ""
    untrusted = "" if row.ours.trust.good else ", NOT TRUSTED"
    return f"{said}; here {value_of(row.ours)}{of}, {ratio_text(row)} of it{untrusted}"
