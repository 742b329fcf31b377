"""Renders headlines as cards: value, setting, share of ceiling as a bar, spread, trust."""

from collections.abc import Collection, Sequence

from flowos.model import Measurement, counted, lower_is_better
from flowos.report._panels import headlines_of, varying, with_axis
from flowos.report._report import HeadlineNumber, Report
from flowos.report._words import share_of, share_text, spread_of, untrusted_of, value_of
from flowos.report.page._marks import people, symbol
from flowos.report.page._markup import Markup, join, tag

_WARNING = "\N{BLACK UP-POINTING TRIANGLE}"


def cards(report: Report) -> Markup | None:
    """All headlines, or None if nothing was measured."""
    found = headlines_of(report)
    if not found:
        return None
    shared = _shared([h.measured for h in found])
    said = [tag("p", line, class_="warn") for line in dict.fromkeys(shared.values())]
    return join(*said, tag("ul", *(_card(report, h, shared) for h in found), class_="cards"))


def _shared(measured: Sequence[Measurement]) -> dict[Measurement, str]:
    """Evidence against several cards, shown once above them: card -> text."""
    shared: dict[Measurement, str] = {}
    for untrusted in untrusted_of(measured):
        if len(untrusted.numbers) > 1:
            count = f"{len(untrusted.numbers)} of {len(measured)}"
            line = f"{_WARNING} {count} not trusted: {untrusted.why}"
            shared |= dict.fromkeys(untrusted.numbers, line)
    return shared


def _card(report: Report, headline: HeadlineNumber, shared: Collection[Measurement]) -> Markup:
    m = headline.measured
    value, _, unit = value_of(m).partition(" ")
    setting = _setting(report, headline)
    return tag(
        "li",
        tag("h3", headline.label),
        tag("p", value, tag("small", f" {symbol(unit)}"), class_="big"),
        None if report.run.request.commands else _meter(m),
        tag("p", _repeated(m), class_="note"),
        tag("p", f"with {setting}", class_="note") if setting else None,
        _trust(m, shown_above=m in shared),
        class_="card" if m.trust.good else "card untrusted",
    )


def _setting(report: Report, headline: HeadlineNumber) -> str:
    """The levels of this case that are not in the label."""
    m = headline.measured
    rows = [
        other
        for other in report.measurements
        if (other.case.probe, other.metric) == (m.case.probe, m.metric)
    ]
    levels = ((axis, m.case.level(axis)) for axis in varying(rows))
    levels = ((axis, level) for axis, level in levels if axis not in headline.named)
    return ", ".join(with_axis(axis, level) for axis, level in levels if level)


def _repeated(m: Measurement) -> str:
    kind = "best" if m.ceiling else "median"
    if m.count == 1:
        return "measured once"
    return f"{kind} of {counted(m.count, 'repetition')}, middle half {people(spread_of(m))}"


def _meter(m: Measurement) -> Markup:
    """The bar is the share of the measured ceiling, or of the nominal one if only that is known."""
    kind = next((k for k in ("measured", "nominal") if share_of(m, k)), None)
    found = share_of(m, kind) if kind else None
    if found is None:
        return tag("p", _without_share(m), class_="note")
    kinds = [
        k for k in ("measured", "nominal") if share_of(m, k) or (m.ceiling and k == "measured")
    ]
    words = (tag("p", _of(m, k), class_=None if k == kinds[0] else "note") for k in kinds)
    width = 100 * min(max(found.value, 0.0), 1.0) if found.value == found.value else 0.0
    return join(tag("div", tag("i", style=f"width:{width:.1f}%"), class_="meter"), *words)


def _without_share(m: Measurement) -> str:
    if m.ceiling:
        return "this is the ceiling"
    return "ceilings are of rates" if lower_is_better(m.unit) else "no ceiling is known"


def _of(m: Measurement, kind: str) -> str:
    if m.ceiling and kind == "measured":
        return "this is the measured ceiling"
    return people(share_text(m, kind)).replace(" of ", f" of the {kind} ceiling, ", 1)


def _trust(m: Measurement, *, shown_above: bool) -> Markup:
    if m.trust.good:
        return tag("p", "\N{CHECK MARK} trusted", class_="trust good")
    if shown_above:
        return tag("p", f"{_WARNING} not trusted", class_="trust warn")
    first, *others = m.trust.marks
    marks = f"{first}; and {counted(len(others), 'other reason')}" if others else first
    return tag("p", f"{_WARNING} not trusted: {marks}", class_="trust warn")
