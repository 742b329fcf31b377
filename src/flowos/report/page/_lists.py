"""What not to believe and why; what was not measured and what mends it."""

from collections.abc import Sequence

from flowos.report._book import Book
from flowos.report._words import case_text, counted, gaps_of, value_of
from flowos.report.page._marks import people
from flowos.report.page._markup import Markup, join, tag

_AT_ONCE = 6


def doubts(book: Book) -> Markup | None:
    """Marked numbers by their reason, or a calm word where there are none."""
    if not book.measurements:
        return None
    found: dict[tuple[str, ...], list[str]] = {}
    for m in book.doubtful:
        words = people(f"{case_text(m.case)}: {m.metric.replace('_', ' ')} {value_of(m)}")
        found.setdefault(m.trust.marks, []).append(words)
    if not found:
        calm = tag("p", "Nothing disturbed the measurements.", class_="note")
        return tag("div", tag("h3", "Not to be trusted"), calm)
    rows = [_doubt(marks, numbers) for marks, numbers in found.items()]
    return tag("div", tag("h3", "Not to be trusted"), _list(rows))


def _doubt(marks: Sequence[str], numbers: Sequence[str]) -> Markup:
    why = tag("strong", "; ".join(marks), class_="warn")
    if len(numbers) == 1:
        return tag("li", why, tag("br"), numbers[0])
    inner = tag("ul", *(tag("li", words) for words in numbers), class_="plain")
    return tag("li", why, tag("details", tag("summary", counted(len(numbers), "number")), inner))


def gaps(book: Book) -> Markup | None:
    """What was not measured, why, and the command that mends it."""
    rows = []
    for gap in gaps_of(book.run):
        mend = (
            join(tag("br"), "To mend it: ", tag("code", gap.why.remedy)) if gap.why.remedy else None
        )
        rows.append(tag("li", tag("strong", gap.what), f" - {gap.why.reason}", mend))
    return tag("div", tag("h3", "Not measured"), _list(rows)) if rows else None


def _list(rows: Sequence[Markup]) -> Markup:
    """The first few at once, the others on demand."""
    shown = tag("ul", *rows[:_AT_ONCE], class_="plain")
    if len(rows) <= _AT_ONCE:
        return shown
    more = tag("summary", f"{len(rows) - _AT_ONCE} more")
    return join(shown, tag("details", more, tag("ul", *rows[_AT_ONCE:], class_="plain")))
