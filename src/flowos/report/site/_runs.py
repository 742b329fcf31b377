"""The list of measurements."""

from collections.abc import Sequence

from flowos.model import ListedRun, counted
from flowos.report.page._markup import Markup, tag
from flowos.report.site._frame import notes, quoted, section, site_page
from flowos.report.site._tables import Cell, ListPart, clock, lasted, pager, state, table

_COLUMNS = ("measured", "machine", "processor*", "probes*", "samples>", "lasted>*", "state")


def runs_html(listing: ListPart[ListedRun], problems: tuple[str, ...] = ()) -> str:
    """A part of the list of measurements; each leads to its report."""
    title = "Measurements"
    deck = f"{counted(listing.total, 'run')} of flowos measure."
    shown = runs_table("Measurements", listing.found) if listing.found else None
    part = section("list", "Newest first", shown, pager(listing, "/runs"))
    return site_page("/runs", title, deck, notes(problems), part)


def runs_table(caption: str, runs: Sequence[ListedRun]) -> Markup:
    return table(caption, _COLUMNS, [_row(each) for each in runs])


def _row(listed: ListedRun) -> tuple[Cell, ...]:
    run = listed.run
    request = run.request
    probes = ", ".join(request.subject) or "all"
    how = "running or cut off" if not run.ended else "ended early" if run.ended_early else "ended"
    return (
        tag("a", f"{clock(run.started)}", href=f"/runs/{quoted(run.id)}", title=run.id),
        run.host,
        run.facts.cpu_model,
        f"{probes} ({request.effort})",
        str(listed.samples),
        lasted(run.started, run.ended),
        state(how),
    )
