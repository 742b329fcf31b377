"""Slow ones among machines, and changes of one machine over time, for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from flowos.model import UnjudgedNumber, counted
from flowos.plan import NumberChange, NumberHistory, SlowLimit, SlowMachine, SlowMachines
from flowos.report._acceptance_text import lines_of_unjudged, what_text
from flowos.report._units import common_scale, digits, number, share
from flowos.report._wrap import safe, wrapped

_HARDLY_FOUND, _NEVER_FOUND = 0.5, 0.001
"""Below such a limit a slow machine goes unseen."""

_SHOWN = 12
"""So many of the values of each part of a history."""


def slow_text(found: SlowMachines, error: float) -> str:
    """Which machines are slow, in what."""
    return "\n".join(map(safe, _slow(found, error))) + "\n"


def slow_line(each: SlowMachine) -> str:
    """Such as n7 is slow: stream: triad 30.1 GB/s, 45.2 GB/s on the others."""
    value, others = (number(v, each.unit, each.metric) for v in (each.value, each.others))
    return (
        f"{each.machine} is slow: {what_text(each.case, each.metric)} {value},"
        f" {others} on the others (x{each.ratio:.3f}, chance {_chance(each.chance)})"
    )


def changes_text(
    machine: str, runs: Sequence[str], histories: Sequence[NumberHistory], error: float
) -> str:
    """When which numbers changed, on their history. runs: ids, oldest first."""
    return "\n".join(map(safe, _changes(machine, runs, histories, error))) + "\n"


def _slow(found: SlowMachines, error: float) -> Iterator[str]:
    names = dict.fromkeys(each.machine for each in found.slow)
    said = f"slow: {', '.join(names)}" if names else "none is slow"
    machines = counted(len(found.machines), "run" if found.by_run else "machine")
    yield from wrapped(f"{machines}, {counted(found.numbers, 'number')} of each; {said}")
    if found.by_run:
        yield "  All runs are of machines with the same name: each counts as one of its own."
    yield from wrapped(
        f"If all are alike, any is called slow with a probability of {share(error)} at most.", "  "
    )
    for each in found.slow:
        yield from wrapped(slow_line(each), "  ", "    ")
    yield from wrapped(_limits(found.limits), "  ", "    ") if found.limits else ()
    yield from lines_of_unjudged(found.unjudged)


def _limits(limits: Sequence[SlowLimit]) -> str:
    """From where on a slow machine is found, in the best and the worst number without one."""
    best, worst = (pick(limits, key=lambda limit: limit.ratio) for pick in (max, min))
    words = f"A slow one is found {_limit(best)}"
    if worst.ratio < best.ratio:
        words += f"; in the number with the most scatter {_limit(worst)}"
    if worst.ratio < _HARDLY_FOUND:
        words += ". More machines, more runs of each, or fewer numbers (--only) find more"
    return f"{words}."


def _limit(limit: SlowLimit) -> str:
    what = what_text(limit.case, limit.metric)
    if limit.ratio < _NEVER_FOUND:
        return f"in no case ({what})"
    return f"from x{limit.ratio:.3f} of the others on ({what})"


def _changes(
    machine: str, runs: Sequence[str], histories: Sequence[NumberHistory], error: float
) -> Iterator[str]:
    changed = [history for history in histories if history.changes]
    yield f"{machine}: {counted(len(runs), 'run')}, {runs[0]} to {runs[-1]}"
    others = [UnjudgedNumber(case=h.case, metric=h.metric) for h in histories if not h.judged]
    yield f"{len(changed)} of {counted(len(histories) - len(others), 'number')} changed"
    yield from wrapped(
        f"If nothing changed, any is said to with a probability of {share(error)} at most.", "  "
    )
    yield from lines_of_unjudged(others)
    for history in changed:
        yield ""
        yield from wrapped(what_text(history.case, history.metric), "", "  ")
        yield from wrapped(_values(history), "  ", "  ")
        for change in history.changes:
            yield from wrapped(_change(change, history), "  ", "    ")


def _values(history: NumberHistory) -> str:
    """The values in order, changes as bars."""
    scale = common_scale(history.values, history.unit, history.metric)
    ends = [0, *history.changed_at, len(history.values)]
    parts = (history.values[start:end] for start, end in pairwise(ends))
    shown = (
        " ".join((*(["..."] if len(p) > _SHOWN else []), *map(scale.text, p[-_SHOWN:])))
        for p in parts
    )
    return f"{' | '.join(shown)} {scale.symbol}".rstrip()


def _change(change: NumberChange, history: NumberHistory) -> str:
    before, after = (number(v, history.unit, history.metric) for v in (change.before, change.after))
    way = "worse" if change.ratio < 1 else "better"
    return (
        f"{way}: {before} to {after}, x{change.ratio:.3f} ({change.low:.3f} to {change.high:.3f}),"
        f" between {change.last} and {change.first}, chance {_chance(change.chance)}"
    )


def _chance(chance: float) -> str:
    return digits(chance) if chance >= 1e-6 else "below 1e-6"
