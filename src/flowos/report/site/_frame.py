"""What live pages have in common: the way between them, and the script that keeps them new."""

from collections.abc import Iterator

from flowos._dataclasses import replace
from flowos.report.page._head import Frame, document
from flowos.report.page._markup import Markup, join, tag

_PLACES = (
    ("/", "Now"),
    ("/programs", "Programs"),
    ("/slices", "Slices"),
    ("/runs", "Measurements"),
    ("/pools", "Pools"),
)
_WITHOUT_SCRIPT_SECONDS = 10
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def quoted(word: str) -> str:
    """A word as a part of an address."""
    octets = word.encode(errors="replace")
    return "".join(chr(b) if b in _SAFE else f"%{b:02X}" for b in octets)


def program_link(id_: str, command: str) -> Markup:
    return tag("a", command, href=f"/programs/{quoted(id_)}")


def _bar(here: str) -> Markup:
    links = (
        tag("li", tag("a", name, href=at, aria_current="page" if at == here else None))
        for at, name in _PLACES
    )
    status = tag("p", id="live", role="status")
    return tag("div", tag("nav", tag("ul", *links), aria_label="FlowOS"), status, class_="site")


SERVED = Frame(bar=_bar("/runs"), runs=True, script="/curves.js")
"""Around a report, which is as it was when it was asked for."""

_LIVE = Frame(
    head=join(
        tag("script", src="/live.js", defer=""),
        tag(
            "noscript",
            tag("meta", http_equiv="refresh", content=str(_WITHOUT_SCRIPT_SECONDS)),
        ),
    ),
    runs=True,
)


FOLLOWED = replace(_LIVE, bar=_bar("/programs"))
"""Around the timeline of a log."""


def site_page(
    here: str, title: str, deck: str | Markup | None, *parts: Markup | None, kicker: str = "live"
) -> str:
    """A live page. here: the place that it belongs to."""
    return document(
        f"{title}, FlowOS",
        tag(
            "header",
            tag("p", tag("b", "FlowOS"), f" {kicker}", class_="kicker"),
            tag("h1", title),
            tag("p", deck, class_="deck") if deck else None,
        ),
        tag("main", *parts, id="main"),
        skip="Skip to the content",
        frame=replace(_LIVE, bar=_bar(here)),
    )


def section(name: str, title: str, *content: Markup | None) -> Markup:
    heading = tag("h2", title, id=f"{name}-h")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-h")


def notes(words: Iterator[str] | tuple[str, ...]) -> Markup | None:
    """What could not be read."""
    lines = [tag("p", word, class_="warn") for word in words]
    return tag("div", *lines, id="notes") if lines else None
