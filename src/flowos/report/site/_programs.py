"""The list of programs that used slices."""

from collections.abc import Sequence

from flowos.model import Process, counted
from flowos.report._units import size
from flowos.report.page._marks import seconds_of
from flowos.report.page._markup import Markup
from flowos.report.site._frame import notes, program_link, section, site_page
from flowos.report.site._tables import (
    Cell,
    ListPart,
    clock,
    command_of,
    lasted,
    pager,
    state,
    table,
)

_COLUMNS = ("program", "state", "began*", "lasted>", "runs>", "cpu>*", "memory>*", "host*")


def programs_html(listing: ListPart[Process], problems: tuple[str, ...] = ()) -> str:
    """A part of the list of programs."""
    title = "Programs"
    deck = f"{counted(listing.total, 'program')} that used slices."
    shown = programs_table("Programs", listing.found) if listing.found else None
    part = section("list", "Newest first", shown, pager(listing, "/programs"))
    return site_page("/programs", title, deck, notes(problems), part)


def programs_table(caption: str, programs: Sequence[Process]) -> Markup:
    return table(caption, _COLUMNS, [_row(each) for each in programs])


def link(process: Process) -> Markup:
    return program_link(process.id, command_of(process))


def _row(process: Process) -> tuple[Cell, ...]:
    return (
        link(process),
        state(process.state),
        clock(process.started),
        *_used(process),
        process.host,
    )


def _used(process: Process) -> tuple[str, ...]:
    """How long it lasted, and what it counted until its end; before that its record is behind, and
    of one that was killed the end is not known."""
    if process.state != "ended":
        return "", "", "", ""
    runs = sum(use.runs for use in process.uses)
    took = lasted(process.started, process.ended)
    return took, str(runs), seconds_of(process.cpu_seconds), size(process.max_rss_bytes)
