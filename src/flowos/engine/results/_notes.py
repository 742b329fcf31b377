"""What a slice says of results that it took from a journal or computed again; of several nodes, in
one line."""

import re
from collections.abc import Iterable

from flowos.model import counted

_COUNTED = re.compile(
    r"(?P<count>\d+) (?P<what>result|call)s? (?:was |were )?(?P<rest>taken from .*|of task .*?)"
    r"(?P<first> \(.*\))?",
    re.DOTALL,
)


def taken_note(count: int, places: str) -> str:
    return f"{_results(count)} taken from {places}"


def again_note(count: int, label: str, why: str, first: str) -> str:
    """first: of the files that it is about, or ""."""
    return f"{counted(count, 'call')} of task {label!r} ran again: {why}{first and f' ({first})'}"


def new_inputs_note(count: int, label: str, place: str) -> str:
    return f"{counted(count, 'call')} of task {label!r} ran: {place} has no result of these inputs"


def summed_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Each note once; of those that count the same thing one, with the sum, at the end."""
    others: dict[str, None] = {}
    counts: dict[str, tuple[int, re.Match[str]]] = {}
    for note in notes:
        if found := _COUNTED.fullmatch(note):
            count, first = counts.get(found["rest"], (0, found))
            counts[found["rest"]] = count + int(found["count"]), first
        else:
            others[note] = None
    return (*others, *(_summed(count, first) for count, first in counts.values()))


def _summed(count: int, first: re.Match[str]) -> str:
    what = _results(count) if first["what"] == "result" else counted(count, "call")
    return f"{what} {first['rest']}{first['first'] or ''}"


def _results(count: int) -> str:
    return f"{counted(count, 'result')} {'was' if count == 1 else 'were'}"
