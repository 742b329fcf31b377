"""The book as Markdown (GitHub's tables): headlines, doubts, gaps, findings, all numbers, facts."""

from collections.abc import Iterator, Sequence

from flowos.model import Measurement
from flowos.report._book import Book
from flowos.report._panels import headlines_of
from flowos.report._words import (
    case_text,
    facts_rows,
    gaps_of,
    machine_line,
    ratio_text,
    share_text,
    spread_of,
    trust_of,
    value_of,
)

_NUMBER = ("median", "middle half", "of measured ceiling", "of nominal", "trust")


def markdown(book: Book) -> str:
    """Everything but the raw samples; for those see json."""
    parts = (_head, _headlines, _gaps, _findings, _verdicts, _numbers, _facts)
    return "\n".join(line for part in parts for line in part(book)).rstrip() + "\n"


def _head(book: Book) -> Iterator[str]:
    yield f"# {_cell(book.run.facts.cpu_model)} ({_cell(book.run.host)})"
    yield ""
    yield _cell(machine_line(book.run.facts))
    yield ""
    yield f"Run {_cell(book.run.id)}, {_cell(book.run.started)}, FlowOS {_cell(book.run.version)}."
    yield ""


def _headlines(book: Book) -> Iterator[str]:
    found = headlines_of(book)
    rows = [(h.label, *_cells(h.measured)) for h in found]
    return _section("Headlines", ("", *_NUMBER), rows)


def _gaps(book: Book) -> Iterator[str]:
    rows = [(g.what, g.why.reason, g.why.remedy) for g in gaps_of(book.run)]
    return _section("Not measured", ("what", "why", "to mend it"), rows)


def _findings(book: Book) -> Iterator[str]:
    if book.findings:
        yield "## Findings"
        yield ""
        yield from (f"- {_cell(finding)}" for finding in book.findings)
        yield ""


def _verdicts(book: Book) -> Iterator[str]:
    rows = [
        (
            f"{v.probe} {v.metric}",
            f"{v.axis}: {v.other} instead of {v.base}",
            v.answer,
            ratio_text(v),
            str(v.rounds),
            ", ".join(f"{axis} {level}" for axis, level in v.rest),
            v.why,
        )
        for v in book.verdicts
    ]
    names = ("number", "change", "answer", "ratio (95 %)", "rounds", "at", "why")
    return _section("What each setting is worth", names, rows)


def _numbers(book: Book) -> Iterator[str]:
    titles = {section.probe: section.title for section in book.sections}
    for probe in dict.fromkeys(m.case.probe for m in book.measurements):
        rows = [
            (case_text(m.case), m.metric, str(m.count), *_cells(m))
            for m in book.measurements
            if m.case.probe == probe
        ]
        yield from _section(titles.get(probe, probe), ("case", "metric", "n", *_NUMBER), rows)


def _facts(book: Book) -> Iterator[str]:
    facts = book.run.facts
    yield from _section("The machine", ("", ""), facts_rows(facts))
    rows = [(m.what, m.loses, m.remedy) for m in facts.missing]
    yield from _section("Not known", ("what", "what is lost", "to mend it"), rows)


def _cells(m: Measurement) -> tuple[str, ...]:
    return (
        value_of(m),
        spread_of(m),
        share_text(m, "measured"),
        share_text(m, "nominal"),
        trust_of(m),
    )


def _section(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"## {_cell(title)}"
    yield ""
    yield _line(names)
    yield _line(["---"] * len(names))
    yield from (_line([_cell(cell) for cell in row]) for row in rows)
    yield ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(words: str) -> str:
    """Text that stays text: no markup, no second line, no second column."""
    flat = "".join(c if c.isprintable() else " " for c in words)
    for sign in "\\`*_<>[]|":
        flat = flat.replace(sign, "\\" + sign)
    return flat.encode("utf-8", "replace").decode("utf-8")
