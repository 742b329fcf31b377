"""The first page: what runs now, what waits and why, and what ran last."""

from collections.abc import Iterator

from flowos._dataclasses import dataclass
from flowos.model import ListedRun, Process, SliceRecord, counted
from flowos.report.page._markup import Markup, join, tag
from flowos.report.site._frame import notes, section, site_page
from flowos.report.site._program import flows_table
from flowos.report.site._programs import link, programs_table
from flowos.report.site._runs import runs_table
from flowos.report.site._slices import cost_of, held_nodes, queue_table, slices_table
from flowos.report.site._tables import command_of, since


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Newest first. slices: of pools, that are not over; some may outlive their program.
    problems: what could not be read, one line each. now: seconds since 1970."""

    host: str
    now: float
    running: tuple[Process, ...] = ()
    slices: tuple[SliceRecord, ...] = ()
    over: tuple[Process, ...] = ()
    runs: tuple[ListedRun, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def waiting(self) -> tuple[SliceRecord, ...]:
        return tuple(each for each in self.slices if each.state == "waiting")


_NOTHING = "No program has slices now. fo.slice(...) and flowos run appear here by themselves."


def overview_html(seen: Overview) -> str:
    """What runs now on this machine for this user."""
    none = None if seen.running else tag("p", _NOTHING, class_="note")
    running = (_program(seen, each) for each in seen.running)
    return site_page(
        "/",
        "What runs now",
        None,
        notes(seen.problems),
        _queue(seen) if seen.waiting else None,
        section("running", "Programs with slices", none or _cards(seen), *running),
        _left(seen),
        _over(seen) if seen.over else None,
        _measured(seen) if seen.runs else None,
        kicker=f"live on {seen.host}",
    )


def _cards(seen: Overview) -> Markup:
    nodes = held_nodes(seen.slices)
    held = sum(each.state == "held" for each in seen.slices)
    cost = cost_of([each for each in seen.slices if each.state == "held"], seen.now)
    cards = [
        _card("Programs", str(len(seen.running)), "with slices now"),
        _card("Nodes of pools held", str(nodes), f"in {counted(held, 'slice')}"),
        _card("Waiting", str(len(seen.waiting)), "slices without nodes yet"),
    ]
    if cost:
        cards.append(_card("Cost so far", cost, "of the slices that are held now"))
    return tag("ul", *cards, class_="cards small")


def _card(label: str, value: str | Markup, note: str) -> Markup:
    big = tag("p", value, class_="big")
    return tag("li", tag("h3", label), big, tag("p", note, class_="note"), class_="card")


def _queue(seen: Overview) -> Markup:
    programs = {each.id: command_of(each) for each in seen.running}
    shown = queue_table("Slices that wait", seen.waiting, programs)
    why = tag("code", f"flowos why {seen.waiting[0].id}")
    note = tag("p", why, " asks its cluster when it may start, and what may start sooner.")
    return section("queue", "What waits, and why", shown, note)


def _program(seen: Overview, process: Process) -> Markup:
    slices = [each for each in seen.slices if each.process == process.id]
    return tag(
        "article",
        tag("h3", link(process)),
        tag("p", since(process.started), f" on {process.host}, pid {process.pid}", class_="note"),
        join(*_tables(seen, process, slices)),
    )


def _left(seen: Overview) -> Markup | None:
    """What is held for programs that are gone."""
    known = {each.id for each in seen.running}
    left = [each for each in seen.slices if each.process not in known]
    if not left:
        return None
    shown = slices_table("Slices that outlived their programs", left, seen.now)
    note = tag("p", "Their leases last; ", tag("code", "flowos slice free ID"), " ends one.")
    return section("left", "Held, and their programs are gone", shown, note)


def _tables(seen: Overview, process: Process, slices: list[SliceRecord]) -> Iterator[Markup]:
    if slices:
        yield slices_table(f"Slices of {process.id}", slices, seen.now)
    if process.uses:
        yield flows_table(f"Flows of {process.id}", process)


def _over(seen: Overview) -> Markup:
    shown = programs_table("Programs that are over", seen.over)
    return section("over", "What ran before", shown, _all("/programs", "All programs"))


def _measured(seen: Overview) -> Markup:
    shown = runs_table("Measurements", seen.runs)
    return section("measured", "Measurements", shown, _all("/runs", "All measurements"))


def _all(at: str, words: str) -> Markup:
    return tag("p", tag("a", words, href=at))


def problem_html(title: str, words: str) -> str:
    """A page that is not there, or that cannot be made now."""
    return site_page("", title, words)
