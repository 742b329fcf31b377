"""What a slice says of results that it took from a journal or computed again; of several nodes, in
one line."""

import re
from collections.abc import Iterable

_COUNTED = re.compile(
    r"(?P<count>\d+) (?P<what>results|calls?) (?P<rest>were taken from .*|of task .*?)"
    r"(?P<first> \(.*\))?",
    re.DOTALL,
)


def taken_note(count: int, places: str) -> str:
    return f"{count} results were taken from {places}"


def again_note(count: int, label: str, why: str, first: str) -> str:
    """first: of the files that it is about, or ""."""
    return f"{_calls(count)} of task {label!r} ran again: {why}{first and f' ({first})'}"


def new_inputs_note(count: int, label: str, place: str) -> str:
    return f"{_calls(count)} of task {label!r} ran: {place} has no result of these inputs"


def summed_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Each note once; of those that count the same thing one, with the sum, at the end."""
    others: dict[str, None] = {}
    counted: dict[str, tuple[int, re.Match[str]]] = {}
    for note in notes:
        if found := _COUNTED.fullmatch(note):
            count, first = counted.get(found["rest"], (0, found))
            counted[found["rest"]] = count + int(found["count"]), first
        else:
            others[note] = None
    return (*others, *(_summed(count, first) for count, first in counted.values()))


def _summed(count: int, first: re.Match[str]) -> str:
    what = f"{count} results" if first["what"] == "results" else _calls(count)
    return f"{what} {first['rest']}{first['first'] or ''}"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"
