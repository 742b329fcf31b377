"""Slices of pools as tables: what is held, what waits and why, what it costs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from flowos.model import SliceRecord, counted
from flowos.report._slice_words import accounted_words, asked_words, job_words
from flowos.report.page._marks import brief, seconds_of
from flowos.report.page._markup import Markup, join, tag
from flowos.report.site._frame import notes, program_link, section, site_page
from flowos.report.site._tables import Cell, ListPart, clock, moment, pager, passing, state, table

_COLUMNS = ("slice", "state", "pool", "nodes*", "asked*", "waited>*", "held>", "cost>")
_QUEUE = ("program", "pool", "asked for", "since*", "why")
_NAMED = 4
_HOUR = 3600.0
_LAST_SECOND = 1e11


def slices_html(listing: ListPart[SliceRecord], now: float, problems: tuple[str, ...] = ()) -> str:
    """A part of the list of slices of pools; each leads to its program."""
    deck = f"{counted(listing.total, 'slice')} of pools."
    rows = [(program_link(s.process, s.id), *_row(s, now)[1:]) for s in listing.found]
    shown = table("Slices", _COLUMNS, rows) if rows else None
    part = section("list", "Newest first", shown, pager(listing, "/slices"))
    return site_page("/slices", "Slices", deck, notes(problems), part)


def slices_table(caption: str, slices: Sequence[SliceRecord], now: float) -> Markup:
    """Of one program."""
    return table(caption, _COLUMNS, [_row(each, now) for each in slices])


def _row(each: SliceRecord, now: float) -> tuple[Cell, ...]:
    why = each.why if each.state not in ("held", "freed") else ""
    waits = each.state == "waiting"
    return (
        each.id,
        join(state(each.state), f": {brief(why)}" if why else None),
        each.pool,
        _nodes(each),
        clock(iso(each.asked)),
        passing(iso(each.asked)) if waits else seconds_of(each.waited_seconds(now)),
        _held(each),
        cost_of([each], now) if each.nodes else "",
    )


def _held(each: SliceRecord) -> str | Markup:
    """For how long it had nodes."""
    if not each.nodes:
        return ""
    first = min(node.since for node in each.nodes)
    ends = [node.until for node in each.nodes if node.until is not None]
    if len(ends) < len(each.nodes):
        return passing(iso(first))
    return seconds_of(max(ends) - first)


def queue_table(
    caption: str, waiting: Sequence[SliceRecord], programs: Mapping[str, str]
) -> Markup:
    """What waits for nodes. The reason is what the pool said last. programs: id -> command."""
    rows = [
        (
            program_link(each.process, programs.get(each.process, each.process)),
            each.pool,
            asked_words(each.ask, seconds_of),
            moment(iso(each.asked)),
            brief(each.why) or "not said yet",
        )
        for each in waiting
    ]
    return table(caption, _QUEUE, rows)


def held_nodes(slices: Iterable[SliceRecord]) -> int:
    return sum(node.until is None for each in slices for node in each.nodes)


def cost_of(slices: Sequence[SliceRecord], now: float) -> Markup:
    """By currency; "" where no pool has a price. The script counts on what is held."""
    costs: dict[str, tuple[float, float]] = {}
    for each in slices:
        cost = each.cost(now)
        if cost is not None and each.price is not None:
            price = each.price.per_node_hour or 0.0
            before, rate = costs.get(each.price.currency, (0.0, 0.0))
            held = held_nodes([each]) * price / _HOUR
            costs[each.price.currency] = (before + cost, rate + held)
    words = [_money(cost, unit, rate, now) for unit, (cost, rate) in sorted(costs.items())]
    return join(*words[:1], *(join(", ", word) for word in words[1:]))


def _money(cost: float, unit: str, rate: float, now: float) -> Markup:
    words = f"{cost:.{4 if cost < 1 else 2}f}\N{NO-BREAK SPACE}{unit}"
    if not rate:
        return tag("span", words)
    return tag(
        "span", words, data_from=repr(cost), data_rate=repr(rate), data_at=iso(now), data_unit=unit
    )


def events_list(each: SliceRecord) -> Markup:
    """What was asked for, what happened, and what the resource manager accounted for it."""
    summary = tag("summary", f"{counted(len(each.events), 'event')} of {each.id}")
    return tag("details", summary, tag("ul", *_events(each), class_="plain"))


def _events(each: SliceRecord) -> Iterator[Markup]:
    yield _event(each.asked, f"asked for {asked_words(each.ask, seconds_of)}")
    for event in each.events:
        node = f"node {event.node}: " if event.node else ""
        why = f": {event.reason}" if event.reason else ""
        yield _event(event.at, f"{node}{event.what}{why}")
    if each.jobs:
        yield tag("li", job_words(each))
    if each.accounts:
        yield tag("li", accounted_words(each.accounts))


def _event(at: float, words: str) -> Markup:
    return tag("li", tag("time", iso(at)[11:19], datetime=iso(at)), f" {words}")


def iso(at: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC."""
    moment = datetime.fromtimestamp(min(max(0.0, at), _LAST_SECOND), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _nodes(each: SliceRecord) -> str:
    names = [node.name for node in each.nodes if each.is_over or node.until is None]
    if not names:
        return asked_words(each.ask, seconds_of)
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
