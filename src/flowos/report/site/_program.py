"""A program: its slices, what ran on them, and the timeline of its tasks."""

from collections.abc import Sequence

from flowos._dataclasses import dataclass
from flowos.model import Process, SliceLog, SliceRecord, SliceUse
from flowos.report._units import size
from flowos.report.page._marks import seconds_of
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._timeline import what_ran_when
from flowos.report.site._frame import notes, quoted, section, site_page
from flowos.report.site._slices import events_list, slices_table
from flowos.report.site._tables import Cell, clock, command_of, lasted, since, state, table

_USES = ("flow", "pool", "node*", "environment*", "slices>", "runs>", "found>*", "held>")
_COUNTED_AT_THE_END = 3
"""The last columns, which only a program that recorded its end has counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLog:
    """A log of a program's slices: read, unless that takes long or cannot be."""

    path: str
    log: SliceLog | None = None
    problem: str = ""


def program_html(
    process: Process,
    now: float,
    slices: Sequence[SliceRecord] = (),
    logs: Sequence[ProgramLog] = (),
    problems: tuple[str, ...] = (),
) -> str:
    """One program. logs: in the order of their numbers in addresses."""
    has = slices_table("Slices of pools", slices, now) if slices else None
    return site_page(
        "/programs",
        command_of(process),
        join(state(process.state), ", ", _when(process)),
        notes(problems),
        section("slices", "Its slices", has, *map(events_list, slices), _flows(process)),
        *(_log(process, number, each) for number, each in enumerate(logs)),
        section("facts", "The program", tag("dl", *_facts(process), class_="facts")),
    )


def _when(process: Process) -> str | Markup:
    if process.state == "running":
        return since(process.started)
    if process.state == "lost":
        return f"from {clock(process.started)} UTC, last seen at {clock(process.ended)} UTC"
    took = lasted(process.started, process.ended)
    return f"from {clock(process.started)} to {clock(process.ended)} UTC, {took}"


def _flows(process: Process) -> Markup | None:
    return flows_table("Flows", process) if process.uses else None


def flows_table(caption: str, process: Process) -> Markup:
    """What flows had slices, and what is known of them: a program counts for its record only when
    it opens a slice, and when it ends."""
    known = None if process.state == "ended" else -_COUNTED_AT_THE_END
    rows = [_use(use)[:known] for use in process.uses]
    return table(caption, _USES[:known], rows)


def _use(use: SliceUse) -> tuple[Cell, ...]:
    counts = (use.slices, use.runs, use.hits)
    return (
        use.flow,
        use.pool,
        use.node,
        use.env,
        *map(str, counts),
        seconds_of(use.held_seconds),
    )


def _log(process: Process, number: int, each: ProgramLog) -> Markup:
    at = f"/programs/{quoted(process.id)}/logs/{number}"
    name = each.path.rpartition("/")[2]
    title = f"What ran when: {name}"
    if each.problem:
        return section(f"log-{number}", title, tag("p", each.problem, class_="warn"))
    shown = what_ran_when(each.log) if each.log else None
    words = "All of its timeline" if each.log else "Its timeline"
    return section(f"log-{number}", title, shown, tag("p", tag("a", words, href=at)))


def _facts(process: Process) -> list[Markup]:
    used = process.state == "ended"
    rows = (
        ("Called as", " ".join(process.argv)),
        ("On", f"{process.host}, pid {process.pid}"),
        ("Processor time", seconds_of(process.cpu_seconds) if used else ""),
        ("Memory at most", size(process.max_rss_bytes) if used else ""),
        ("Id", process.id),
    )
    return [join(tag("dt", what), tag("dd", words)) for what, words in rows if words]
