"""Renders the report as Markdown (GitHub's tables): advice, headlines, gaps, findings, numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from flowos.model import Measurement, Verdict
from flowos.report._comparison_table import grouped, known, rounds_of, summary, untrusted
from flowos.report._matrix import matrices_of
from flowos.report._panels import headlines_of
from flowos.report._report import Report
from flowos.report._roofline import roofs_text, rows_of, title_of
from flowos.report._usual import NAMES, TITLE, about, cells_of
from flowos.report._words import (
    case_text,
    early_of,
    facts_rows,
    gain_of,
    gaps_of,
    label_of,
    machine_line,
    nothing_to_do,
    ratio_text,
    remedy_of,
    rule_of,
    share_text,
    spans_of,
    spread_of,
    trust_of,
    value_of,
    verdicts_title,
    why_of,
)

_NUMBER = ("number", "middle half", "of measured ceiling", "of nominal", "trust")

_WITH_COMMANDS = ("to mend it", "why")


def markdown(report: Report) -> str:
    """Everything except the raw samples; for those see json."""
    parts: Sequence[Callable[[Report], Iterable[str]]] = (
        _head,
        _advice,
        _headlines,
        _places,
        _rooflines,
        _gaps,
        _findings,
        _verdicts,
        _matrices,
        _numbers,
        _facts,
    )
    if report.run.environments:
        parts = (_head, _verdicts, _findings, _gaps, _numbers, _facts)
    return "\n".join(line for part in parts for line in part(report)).rstrip() + "\n"


def _head(report: Report) -> Iterator[str]:
    yield f"# {_cell(report.run.facts.cpu_model)} ({_cell(report.run.host)})"
    yield ""
    yield _cell(machine_line(report.run.facts))
    yield ""
    run = report.run
    yield f"Run {_cell(run.id)}, {_cell(run.started)}, FlowOS {_cell(run.version)}."
    yield ""
    if early := early_of(report.run):
        yield f"**{_cell(early)}.**"
        yield ""


def _advice(report: Report) -> Iterator[str]:
    if report.advice is None:
        return
    yield "## Do this"
    yield ""
    if not report.advice:
        yield _prose(nothing_to_do(report.undecided))
    yield from (
        f"- **{gain_of(each)}** {_prose(each.do)}: {_prose(why_of(each))}" for each in report.advice
    )
    yield ""


def _headlines(report: Report) -> Iterator[str]:
    found = headlines_of(report)
    rows = [(label_of(h), *_cells(h.measured)) for h in found]
    yield from _section("Headlines", ("", *_NUMBER), rows)
    if rows:
        yield rule_of(report.run)
        yield ""


def _places(report: Report) -> Iterator[str]:
    yield from _section(TITLE, NAMES, [cells_of(place) for place in report.places])
    if report.places:
        yield _cell(about(report))
        yield ""


def _rooflines(report: Report) -> Iterator[str]:
    names = ("kernel", "intensity", "reached", "of its roof", "bound by")
    for each in report.rooflines:
        rows = [(r.label, r.intensity, r.flops, r.share, r.by) for r in rows_of(each)]
        yield from _section(title_of(each), names, rows)
        yield f"{_cell(roofs_text(each))}."
        yield ""


def _gaps(report: Report) -> Iterator[str]:
    rows = [
        ("; ".join(map(case_text, g.cases)), g.why.reason, remedy_of(g.why.remedy))
        for g in gaps_of(report.run.unmeasured)
    ]
    return _section("Not measured", ("what", "why", "to mend it"), rows)


def _findings(report: Report) -> Iterator[str]:
    if report.findings:
        yield "## Findings"
        yield ""
        yield from (f"- {_prose(finding)}" for finding in report.findings)
        yield ""


def _verdicts(report: Report) -> Iterator[str]:
    if not report.verdicts:
        return
    yield f"## {verdicts_title(report.run)}"
    yield ""
    yield _cell(summary(report.verdicts)) + "."
    yield ""
    names = ("change", "answer", "ratio (95 %)", "rounds", "at", "why")
    for group in grouped(report.verdicts):
        rows = [
            (
                f"{v.axis}: {v.other} instead of {v.base}",
                _answer(v),
                ratio_text(v),
                rounds_of(v),
                group.at(v),
                v.why,
            )
            for v in group.rows
        ]
        yield from _section(group.title, names, rows, level=3)


def _answer(v: Verdict) -> str:
    mark = f"NOT TRUSTED ({untrusted(v)})" if v.disturbed else ""
    return ", ".join(word for word in (v.answer, known(v), mark) if word)


def _numbers(report: Report) -> Iterator[str]:
    titles = {section.probe: section.title for section in report.sections}
    for probe in dict.fromkeys(m.case.probe for m in report.measurements):
        rows = [
            (case_text(m.case), m.metric, str(m.count), *_cells(m))
            for m in report.measurements
            if m.case.probe == probe
        ]
        yield from _section(titles.get(probe, probe), ("case", "metric", "count", *_NUMBER), rows)


def _matrices(report: Report) -> Iterator[str]:
    for matrix in matrices_of(report):
        rows = [(row, *cells) for row, cells in zip(matrix.rows, matrix.lines(), strict=True)]
        yield from _section(matrix.heading, (matrix.corner, *matrix.columns), rows)


def _facts(report: Report) -> Iterator[str]:
    facts = report.run.facts
    yield from _section("The machine", ("", ""), facts_rows(facts))
    rows = [(m.what, m.loses, remedy_of(m.remedy)) for m in facts.missing]
    yield from _section("Not known", ("what", "what is lost", "to mend it"), rows)


def _cells(m: Measurement) -> tuple[str, ...]:
    return (
        value_of(m),
        spread_of(m),
        share_text(m, "measured"),
        share_text(m, "nominal"),
        trust_of(m),
    )


def _section(
    title: str, names: Sequence[str], rows: Sequence[Sequence[str]], level: int = 2
) -> Iterator[str]:
    if not rows:
        return
    yield f"{'#' * level} {_cell(title)}"
    yield ""
    yield _line(names)
    yield _line(["---"] * len(names))
    kinds = [_prose if name in _WITH_COMMANDS else _cell for name in names]
    for row in rows:
        yield _line([kind(cell) for kind, cell in zip(kinds, row, strict=True)])
    yield ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _prose(words: str) -> str:
    """Text with commands in backquotes as code, where only column separators need escaping."""
    return "".join(
        "`{}`".format(_flat(piece).replace("|", "\\|")) if code else _cell(piece)
        for piece, code in spans_of(words)
    )


def _cell(words: str) -> str:
    """Escaped plain text: no markup, no second line, no second column."""
    flat = _flat(words)
    for sign in "\\`*_<>[]|":
        flat = flat.replace(sign, "\\" + sign)
    return flat


def _flat(words: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in words)
    return printable.encode("utf-8", "replace").decode("utf-8")
