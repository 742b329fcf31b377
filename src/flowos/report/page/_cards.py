"""The headline numbers as cards: value, share of ceiling as a bar, spread, trust."""

from flowos.model import Measurement
from flowos.report._book import Book, Headline
from flowos.report._panels import headlines_of
from flowos.report._words import UNKNOWN, counted, share_of, share_text, spread_of, value_of
from flowos.report.page._marks import people, symbol
from flowos.report.page._markup import Markup, join, tag


def cards(book: Book) -> Markup | None:
    """All headlines, or None when nothing was measured."""
    found = headlines_of(book)
    return tag("ul", *map(_card, found), class_="cards") if found else None


def _card(headline: Headline) -> Markup:
    m = headline.measured
    value, _, unit = value_of(m).partition(" ")
    return tag(
        "li",
        tag("h3", headline.label),
        tag("p", value, tag("small", f" {symbol(unit)}"), class_="big"),
        _meter(m),
        tag("p", f"{people(spread_of(m))} in {counted(m.count, 'repetition')}", class_="note"),
        _trust(m),
        class_="card" if m.trust.good else "card doubt",
    )


def _meter(m: Measurement) -> Markup:
    """The bar is of the measured ceiling, or of the nominal one where that is all we know."""
    kind = next((k for k in ("measured", "nominal") if share_of(m, k)), None)
    found = share_of(m, kind) if kind else None
    if found is None:
        return tag("p", "no ceiling is known", class_="note")
    words = (tag("p", _of(m, "measured")), tag("p", _of(m, "nominal"), class_="note"))
    width = 100 * min(max(found.value, 0.0), 1.0) if found.value == found.value else 0.0
    return join(tag("div", tag("i", style=f"width:{width:.1f}%"), class_="meter"), *words)


def _of(m: Measurement, kind: str) -> str:
    found = share_of(m, kind)
    if found is None:
        return f"{kind} ceiling {UNKNOWN}"
    return people(share_text(m, kind)).replace(" of ", f" of the {kind} ceiling, ", 1)


def _trust(m: Measurement) -> Markup:
    if m.trust.good:
        return tag("p", "\N{CHECK MARK} trusted", class_="trust good")
    first, *others = m.trust.marks
    marks = f"{first}; and {counted(len(others), 'other reason')}" if others else first
    return tag("p", f"\N{BLACK UP-POINTING TRIANGLE} not trusted: {marks}", class_="trust warn")
