"""Renders the report for a terminal: ASCII except for external names, with short lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from flowos.model import Verdict, counted
from flowos.plan import RunsOutcome
from flowos.report._comparison_table import lines_of
from flowos.report._matrix import Matrix, matrices_of
from flowos.report._panels import headlines_of
from flowos.report._report import HeadlineNumber, Report
from flowos.report._roofline import roofs_text, rows_of, title_of
from flowos.report._two_runs import lines_of_runs
from flowos.report._usual import lines_of_places
from flowos.report._words import (
    UNKNOWN,
    early_of,
    gain_of,
    gaps_of,
    is_comparison,
    label_of,
    machine_line,
    nothing_to_do,
    number_text,
    rule_of,
    share_text,
    spread_of,
    untrusted_of,
    value_of,
    verdicts_title,
    why_of,
)
from flowos.report._wrap import WIDTH, folded, safe, wrapped

_COLUMNS = ("", "number", "middle half", "of measured ceiling", "of nominal", "trust")
_MAX_UNTRUSTED = 10


def text(report: Report, width: int = WIDTH) -> str:
    """Advice, headlines, untrusted numbers, missing measurements, and findings.

    width: of the terminal, if it is narrower.
    """
    sections: Sequence[Callable[[Report, int], Iterable[str]]] = (
        _head,
        _advice,
        _headlines,
        lines_of_places,
        _rooflines,
        _doubts,
        _gaps,
        _findings,
        _matrices,
        _tuning_gain,
    )
    if report.run.request.commands and not report.run.environments:
        sections = (_head, _headlines, lines_of_places, _tuning_gain, _findings, _gaps, _doubts)
    if report.run.environments:
        sections = (_head, _tuning_gain, _findings, _gaps, _doubts)
    parts = [line for section in sections for line in section(report, width)]
    shown = "\n".join(safe(line) for line in parts).rstrip() + "\n"
    return folded(shown, width) if width < WIDTH else shown


def verdicts_text(verdicts: Sequence[Verdict], width: int = WIDTH) -> str:
    """Summary of the answers, then a table for each probe, for `flowos compare`."""
    shown = "\n".join(safe(line) for line in lines_of(verdicts, width)) + "\n"
    return folded(shown, width) if width < WIDTH else shown


def runs_text(
    outcome: RunsOutcome,
    probes: Sequence[Verdict],
    numbers: Sequence[Verdict],
    *,
    changes: Sequence[str] = (),
    everything: bool = False,
) -> str:
    """Comparison of two runs.

    changes: what else differs between them. everything: include the numbers whose ranges overlap.
    """
    lines = lines_of_runs(outcome, probes, numbers, changes=changes, everything=everything)
    return "\n".join(map(safe, lines)) + "\n"


def _head(report: Report, _: int) -> list[str]:
    facts = report.run.facts
    untrusted = len(report.untrusted)
    trust = f"; {untrusted} cannot be trusted" if untrusted else "; all can be trusted"
    if is_comparison(report.run) and not untrusted and any(v.disturbed for v in report.verdicts):
        trust += " by their quiet rounds; comparisons marked ! had to use disturbed ones, too"
    count = counted(len(report.measurements), "number") + (trust if report.measurements else "")
    early = early_of(report.run)
    return [
        f"{facts.cpu_model} ({report.run.host})",
        machine_line(facts),
        f"run {report.run.id}, {report.run.started}: {count}",
        *([f"{early}."] if early else []),
        "",
    ]


def _advice(report: Report, width: int) -> Iterator[str]:
    if report.advice is None:
        return
    yield "Do this"
    if not report.advice:
        yield from _item(nothing_to_do(report.undecided), width)
    for each in report.advice:
        head = f"  {gain_of(each)}  "
        yield from wrapped(each.do, head, " " * len(head), width)
        yield from wrapped(why_of(each), " " * len(head), " " * len(head), width)
    yield ""


def _headlines(report: Report, width: int) -> Iterator[str]:
    found = headlines_of(report)
    if not found:
        return
    titles = {section.probe: section.title for section in report.sections}
    names, *rows = _used_columns([_COLUMNS, *(_row(headline) for headline in found)])
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    yield _aligned(names, widths)
    probe = ""
    for headline, row in zip(found, rows, strict=True):
        if headline.measured.case.probe != probe:
            probe = headline.measured.case.probe
            yield titles.get(probe, probe)
        yield _aligned(row, widths)
    yield ""
    yield from wrapped(rule_of(report.run), width=width)
    yield ""


def _matrices(report: Report, width: int) -> Iterator[str]:
    for matrix in matrices_of(report):
        yield matrix.heading
        axes = f"rows: {matrix.row_axis}, columns: {matrix.column_axis}"
        yield from wrapped(axes, "  ", width=width)
        yield from _lines_of_matrix(matrix, width)
        yield ""


def _lines_of_matrix(matrix: Matrix, width: int) -> Iterator[str]:
    rows = [(row, *cells) for row, cells in zip(matrix.rows, matrix.lines(), strict=True)]
    table = [("", *matrix.columns), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + 2 * len(widths) > width:
        yield f"  {len(matrix.rows)} x {len(matrix.columns)} numbers: see the page or Markdown"
        return
    for row in table:
        yield "  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip()


def _used_columns(rows: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Drop the columns in which everything is unknown."""
    columns = [c for c in zip(*rows, strict=True) if any(cell != UNKNOWN for cell in c[1:])]
    return list(zip(*columns, strict=True))


def _row(headline: HeadlineNumber) -> tuple[str, ...]:
    m = headline.measured
    return (
        f"  {label_of(headline)}",
        value_of(m),
        spread_of(m),
        share_text(m, "measured"),
        share_text(m, "nominal"),
        "ok" if m.trust.good else "NOT TRUSTED",
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first and the last column left-aligned, numbers right-aligned."""
    first, *numbers, last = cells
    middle = (n.rjust(width) for n, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join([first.ljust(widths[0]), *middle, last]).rstrip()


def _rooflines(report: Report, width: int) -> Iterator[str]:
    """The roofs, and each kernel where it is fastest."""
    for each in report.rooflines:
        yield title_of(each)
        yield from _item(roofs_text(each), width)
        rows = list(rows_of(each))
        widths = [max(len(getattr(row, name)) for row in rows) for name in ("label", "intensity")]
        for row in rows:
            at = f"{row.label.ljust(widths[0])}  {row.intensity.rjust(widths[1])}"
            yield f"  {at}  {row.flops.rjust(12)}  {row.share} of its roof, by {row.by}"
        yield ""


def _doubts(report: Report, width: int) -> Iterator[str]:
    found = untrusted_of(report.measurements)
    if not found:
        return
    yield "Not to be trusted"
    for untrusted in found[:_MAX_UNTRUSTED]:
        first, count = number_text(untrusted.numbers[0]), len(untrusted.numbers)
        if count == 1:
            yield from _item(f"{first}: {'; '.join(untrusted.numbers[0].trust.marks)}", width)
        else:
            yield from _item(f"{first} and {counted(count - 1, 'other')}: {untrusted.why}", width)
    if len(found) > _MAX_UNTRUSTED:
        yield f"  and {len(found) - _MAX_UNTRUSTED} more reasons, all in the report"
    yield ""


def _gaps(report: Report, width: int) -> Iterator[str]:
    gaps = gaps_of(report.run.unmeasured)
    if not gaps:
        return
    yield "Not measured"
    for gap in gaps:
        yield from _item(f"{gap.what}: {gap.why.reason}", width)
        if gap.why.remedy:
            yield f"    to mend it: {gap.why.remedy}"
    yield ""


def _findings(report: Report, width: int) -> Iterator[str]:
    if report.findings:
        yield "Findings"
        for finding in report.findings:
            yield from _item(finding, width)
        yield ""


def _tuning_gain(report: Report, width: int) -> Iterator[str]:
    if report.verdicts:
        yield verdicts_title(report.run)
        yield from lines_of(report.verdicts, width)
        yield ""


def _item(words: str, width: int) -> Sequence[str]:
    return wrapped(words, "  ", "    ", width)
