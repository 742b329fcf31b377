"""What a slice says of results that were taken from a journal; of several nodes, in one line."""

import re
from collections import Counter
from collections.abc import Iterable

_TAKEN = re.compile(r"(?P<count>\d+) (?P<rest>results were taken from .*)", re.DOTALL)


def taken_note(count: int, places: str) -> str:
    return f"{count} results were taken from {places}"


def summed_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Each note once; of results taken from the same places one, with the sum, at the end."""
    others: dict[str, None] = {}
    taken: Counter[str] = Counter()
    for note in notes:
        if found := _TAKEN.fullmatch(note):
            taken[found["rest"]] += int(found["count"])
        else:
            others[note] = None
    return (*others, *(f"{count} {rest}" for rest, count in taken.items()))
