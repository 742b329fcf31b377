"""Lists untrusted numbers with reasons, and missing measurements with remedies."""

from collections.abc import Sequence

from flowos.model import Case, Measurement, Unmeasured, counted
from flowos.report._report import Report
from flowos.report._words import (
    Gap,
    Untrusted,
    case_text,
    gaps_of,
    number_text,
    remedy_of,
    untrusted_of,
)
from flowos.report.page._marks import people, words
from flowos.report.page._markup import Markup, join, tag

_AT_ONCE = 6


def untrusted(report: Report) -> Markup | None:
    """Marked numbers by their reason, or a note that there are none; None without any numbers."""
    if not report.measurements:
        return None
    found = untrusted_of(report.measurements)
    if not found:
        quiet = tag("p", "Nothing disturbed the measurements.", class_="note")
        return tag("div", tag("h3", "Not to be trusted"), quiet)
    return tag("div", tag("h3", "Not to be trusted"), _list([_untrusted(each) for each in found]))


def _untrusted(untrusted: Untrusted) -> Markup:
    """The reason, with its number; if there are several, they are in a foldable list."""
    why = tag("strong", untrusted.why, class_="warn")
    first, *others = untrusted.numbers
    if not others:
        return tag("li", why, tag("br"), people(number_text(first)), *_more(first))
    like = tag("li", people(number_text(first)), *_more(first))
    rest = (tag("li", people(number_text(m)), f": {'; '.join(m.trust.marks)}") for m in others)
    summary = tag("summary", f"{counted(len(untrusted.numbers), 'number')} with this or alike")
    return tag("li", why, tag("details", summary, tag("ul", like, *rest, class_="plain")))


def _more(m: Measurement) -> Sequence[str]:
    """The marks after the first."""
    return [f"; also: {'; '.join(m.trust.marks[1:])}"] if m.trust.marks[1:] else []


def gaps(unmeasured: Sequence[tuple[Case, Unmeasured]]) -> Markup | None:
    """What was not measured, why, and the remedy."""
    rows = [_gap(gap) for gap in gaps_of(unmeasured)]
    return tag("div", tag("h3", "Not measured"), _list(rows)) if rows else None


def _gap(gap: Gap) -> Markup:
    """Several cases with one reason are counted, and listed in a foldable list."""
    remedy = gap.why.remedy
    mend = join(tag("br"), "To mend it: ", words(remedy_of(remedy))) if remedy else None
    which = None
    if len(gap.cases) > 1:
        named = (tag("li", case_text(case)) for case in gap.cases)
        which = tag("details", tag("summary", "Which"), tag("ul", *named, class_="plain"))
    return tag("li", tag("strong", gap.what), f" - {gap.why.reason}", mend, which)


def _list(rows: Sequence[Markup]) -> Markup:
    """The first few rows; the others in a foldable list."""
    shown = tag("ul", *rows[:_AT_ONCE], class_="plain")
    if len(rows) <= _AT_ONCE:
        return shown
    more = tag("summary", f"{len(rows) - _AT_ONCE} more")
    return join(shown, tag("details", more, tag("ul", *rows[_AT_ONCE:], class_="plain")))
