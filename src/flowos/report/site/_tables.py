"""Lists of programs and measurements as tables that fit a narrow window."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar

from flowos._dataclasses import dataclass
from flowos.model import Process
from flowos.report.page._marks import seconds_of
from flowos.report.page._markup import Markup, join, tag

T = TypeVar("T")
Cell = str | Markup
_MAX_COMMAND = 160
_MAX_WHOLE = 9
"""Characters of a word: four columns of such words fit a telephone's window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPart(Generic[T]):
    """A part of a list, newest first. number: of this part, from 1 on; size: rows of a part; total:
    rows of all."""

    found: tuple[T, ...]
    total: int
    number: int = 1
    size: int = 50

    @property
    def parts(self) -> int:
        return max(1, -(-self.total // self.size))


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Markup:
    """The first cell of a row names it. A column that ends in `>` is of numbers; one in `*` is left
    out in a narrow window, as it is on another page too. caption: for a screen reader."""
    kinds = [_kind(column) for column in columns]
    named = zip(columns, kinds, strict=True)
    head = (tag("th", word.rstrip(">*"), scope="col", class_=kind) for word, kind in named)
    lines = (
        tag(
            "tr",
            tag("th", first, scope="row"),
            *(tag("td", c, class_=_of_cell(c, k)) for c, k in zip(rest, kinds[1:], strict=True)),
        )
        for first, *rest in rows
    )
    parts = tag("thead", tag("tr", *head)), tag("tbody", *lines)
    return tag("table", *parts, class_="list", aria_label=caption)


def _kind(column: str) -> str | None:
    words = [word for mark, word in ((">", "n"), ("*", "more")) if mark in column]
    return " ".join(words) or None


def _of_cell(cell: Cell, kind: str | None) -> str | None:
    """Long words are divided, lest the table be wider than its window; short ones are not."""
    is_short = all(len(word) <= _MAX_WHOLE for word in cell.split())
    return kind if kind or not is_short else "whole"


def pager(listing: "ListPart[T]", at: str) -> Markup | None:
    """Links to the parts before and after."""
    if listing.parts == 1:
        return None
    number = listing.number
    before = tag("a", "Newer", href=f"{at}?page={number - 1}", rel="prev") if number > 1 else None
    after = (
        tag("a", "Older", href=f"{at}?page={number + 1}", rel="next")
        if number < listing.parts
        else None
    )
    here = tag("span", f"Part {number} of {listing.parts}, {listing.total} in all")
    return tag("nav", before, here, after, class_="pager", aria_label="Parts of the list")


def command_of(process: Process) -> str:
    """What was called, as a person would write it, in one line."""
    first, *rest = process.argv or ("?",)
    words = " ".join(shlex.join([first.rpartition("/")[2] or first, *rest]).split())
    cut = words[:_MAX_COMMAND]
    return words if words == cut else f"{cut}\N{HORIZONTAL ELLIPSIS}"


def clock(iso: str) -> str:
    """ISO 8601 in UTC as a person reads it; other texts unchanged."""
    date, t, rest = iso.partition("T")
    return f"{date} {rest[:5]}" if t and rest.endswith(("Z", "+00:00")) else iso


def since(iso: str) -> Markup:
    """From when on; the script adds for how long that is."""
    return join("since ", moment(iso))


def moment(iso: str) -> Markup:
    return join(tag("time", f"{clock(iso)} UTC", datetime=iso), passing(iso, ", for "))


def passing(iso: str, before: str = "") -> Markup:
    """A place where the script shows for how long that is."""
    return tag("span", data_since=iso, data_before=before)


def lasted(started: str, ended: str) -> str:
    """The time between two ISO 8601 times; "" if one is none."""
    try:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return seconds_of(seconds) if seconds >= 1 else "below 1\N{NO-BREAK SPACE}s"


def state(word: str) -> Markup:
    """running, ended, lost and so on: the colour only repeats the word."""
    kind = {"running": "good", "held": "good", "lost": "warn", "refused": "warn"}.get(word)
    return tag("span", word, class_=f"state {kind}" if kind else "state")
