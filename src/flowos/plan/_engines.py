"""Which engine each task with several bodies runs on: the cheapest of all together, with copies.

A task's time on an engine is measured together with the copies of its inputs, for values of about
the same size. First each engine runs the whole flow; then the sum over tasks is minimised: task by
task, of those partial choices that leave later tasks the same values in the same places only the
cheapest is kept (dynamic programming; exact up to 256 of them). So no task decides alone: one that
is faster elsewhere stays where its neighbours are if the copies cost more.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import (
    HOST,
    EnginePlan,
    EngineSite,
    PlannedCopy,
    PlannedTask,
    SiteNote,
)

Engines = tuple[str, ...]
"""Of each site."""
Notes = Mapping[tuple[int, str], Sequence[SiteNote]]
"""By site and engine, the newest last."""
TRIES = 2
"""Runs of a choice before it is believed, besides those in which code is compiled."""
_BYTES_PER_SECOND = 5e9
"""Of a copy, between sizes at which a task was measured: of a PCIe link, about."""
_STATES = 256
_GAIN = 0.97
"""What another choice has to promise to be measured: noise promises a little all the time."""


@dataclass(frozen=True, slots=True)
class TriedEngines:
    """How often a choice was begun, and what its sites took where nothing was compiled."""

    begun: int = 0
    seconds: tuple[float, ...] = ()


def next_engines(
    sites: Sequence[EngineSite], tried: Mapping[Engines, TriedEngines], notes: Notes
) -> tuple[Engines, Literal["measuring", "chosen"]]:
    """The engines of the next run: while some are not measured those, then the cheapest."""
    for choice in single_engines(sites):
        if tried.get(choice, TriedEngines()).begun < TRIES:
            return choice, "measuring"
    known = {choice: median(each.seconds) for choice, each in tried.items() if each.seconds}
    fastest = min(known, key=lambda choice: known[choice], default=None)
    seconds, best = cheapest(sites, notes)
    promising = fastest is None or seconds < _GAIN * known[fastest]
    if promising and tried.get(best, TriedEngines()).begun < TRIES:
        return best, "measuring"
    return fastest or best, "chosen"


def single_engines(sites: Sequence[EngineSite]) -> tuple[Engines, ...]:
    """For each engine the choice that takes it wherever it can, else what the task prefers."""
    engines = dict.fromkeys(engine for site in sites for engine in site.engines)
    return tuple(
        dict.fromkeys(
            tuple(each if each in site.engines else site.engines[0] for site in sites)
            for each in engines
        )
    )


def cheapest(sites: Sequence[EngineSite], notes: Notes) -> tuple[float, Engines]:
    """The choice whose tasks and copies take least together, by what was measured; its seconds."""
    last_read = {
        source[0]: number for number, site in enumerate(sites) for source in site.sources if source
    }
    states: dict[tuple[str, ...], tuple[float, Engines]] = {(): (0.0, ())}
    for number, site in enumerate(sites):
        found: dict[tuple[str, ...], tuple[float, Engines]] = {}
        for seconds, engines in states.values():
            for engine in site.engines:
                choice = (*engines, engine)
                total = seconds + _seconds(sites, number, choice, notes)
                left = tuple(
                    _home(i, each, notes) if last_read.get(i, -1) > number else ""
                    for i, each in enumerate(choice)
                )
                if left not in found or total < found[left][0]:
                    found[left] = (total, choice)
        states = dict(sorted(found.items(), key=lambda each: each[1][0])[:_STATES])
    return min(states.values())


def planned(
    sites: Sequence[EngineSite],
    tried: Mapping[Engines, TriedEngines],
    notes: Notes,
) -> EnginePlan:
    """What the next run does, and what is known of it; of these tasks alone, see `whole_plan`."""
    engines, state = next_engines(sites, tried, notes)
    tasks: list[PlannedTask] = []
    copies: list[PlannedCopy] = []
    for number, (site, engine) in enumerate(zip(sites, engines, strict=True)):
        seen = notes.get((number, engine))
        seconds = _seconds(sites, number, engines, notes) if seen else None
        tasks.append(PlannedTask(task=site.label, engine=engine, seconds=seconds))
        copies += _copies(sites, number, engines, notes)
    return EnginePlan(state=state, tasks=tuple(tasks), copies=tuple(copies))


def _copies(
    sites: Sequence[EngineSite], number: int, engines: Engines, notes: Notes
) -> Iterable[PlannedCopy]:
    """Of a site's inputs, and of its outputs that something else reads."""
    site = sites[number]
    home, sizes = _home(number, engines[number], notes), _sizes(number, notes)
    if sizes is None:
        return
    places = _places(sites, number, engines, notes)
    for port, (size, _), place in zip(site.task.inputs, sizes.taken, places, strict=True):
        if size and place != home:
            yield PlannedCopy(
                value=f"{site.label}.{port.name}", bytes=size, source=place, target=home
            )
    for port, (size, _), read in zip(site.task.outputs, sizes.given, site.read, strict=True):
        if size and read and home != HOST:
            yield PlannedCopy(
                value=f"{site.label}.{port.name}", bytes=size, source=home, target=HOST
            )


def _seconds(sites: Sequence[EngineSite], number: int, engines: Engines, notes: Notes) -> float:
    """Of one task, with the copies of its inputs, and of outputs that something else reads."""
    seen = notes.get((number, engines[number]), ())
    if not seen:
        return float("inf")
    moved = sum(copy.bytes or 0 for copy in _copies(sites, number, engines, notes))
    near = min(abs(note.moved_bytes - moved) for note in seen)
    alike = [note for note in seen if abs(note.moved_bytes - moved) == near]
    extra = (moved - alike[0].moved_bytes) / _BYTES_PER_SECOND
    measured = median(note.seconds for note in alike)
    return max(measured + extra, 0.1 * measured)


def _places(sites: Sequence[EngineSite], number: int, engines: Engines, notes: Notes) -> list[str]:
    """Where each input is: at the home of what gives it, else where it was seen."""
    sizes = _sizes(number, notes)
    seen = [place for _, place in sizes.taken] if sizes else [HOST] * len(sites[number].sources)
    return [
        place if source is None else _home(source[0], engines[source[0]], notes)
        for place, source in zip(seen, sites[number].sources, strict=True)
    ]


def _home(number: int, engine: str, notes: Notes) -> str:
    seen = notes.get((number, engine))
    return seen[-1].home if seen else HOST


def _sizes(number: int, notes: Notes) -> SiteNote | None:
    """A note that says the sizes of a site's values: they are the same on each engine."""
    return next((seen[-1] for (site, _), seen in notes.items() if site == number and seen), None)
