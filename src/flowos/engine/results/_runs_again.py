"""Why tasks run again although results of them are kept: what a slice says of it."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from flowos.engine.results._journal import Journal
from flowos.engine.results._key_parts import (
    KeyParts,
    changes,
    keep_parts,
    kept_parts,
)
from flowos.engine.results._notes import again_note, new_inputs_note

_NAMED = 3
_MAX_COMPARED = 20


class KeptTask(NamedTuple):
    """A task whose results are kept. parts: of its code, which takes time."""

    label: str
    code: bytes
    parts: Callable[[], KeyParts]


class RunsAgain:
    """Counts what is computed of a slice's tasks, by the reason. Thread-safe.

    journal: the one of the slice; what is cached for all programs is not compared. any_of: what
    may have changed where the parts of a code are not known.
    """

    def __init__(self, journal: Journal | None, tasks: Iterable[KeptTask], any_of: str) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._lost: dict[bytes, None] = {}
        self._again: dict[tuple[str, str], tuple[int, str]] = {}
        self._new_inputs: Counter[str] = Counter()
        self._found: set[str] = set()
        self._known: set[bytes] = set()
        self._other_code: tuple[str, ...] = ()
        if journal is not None:
            self._other_code = self._compared(journal, tasks, any_of)

    def found(self, label: str) -> None:
        """A result of this task could be used."""
        self._found.add(label)

    def lost(self, label: str, key: bytes, why: str, which: str = "") -> None:
        """The result of this call cannot be used. which: a file of it."""
        with self._lock:
            count, first = self._again.get((label, why), (0, which))
            self._again[label, why] = count + 1, first
            self._lost[key] = None

    def computed(self, label: str, code: bytes, key: bytes) -> None:
        """This call has a result now."""
        if code not in self._known and not self._lost:
            return
        with self._lock:
            if self._lost.pop(key, self) is self and code in self._known:
                self._new_inputs[label] += 1

    def notes(self) -> tuple[str, ...]:
        """Inputs are said to be others only where no result was found: else a sweep goes on."""
        with self._lock:
            again = dict(self._again)
            inputs = {n: count for n, count in self._new_inputs.items() if n not in self._found}
        place = "" if self._journal is None else self._journal.name
        return (
            *self._other_code,
            *(again_note(count, *of, first) for of, (count, first) in again.items()),
            *(new_inputs_note(count, label, place) for label, count in inputs.items()),
        )

    def _compared(
        self, journal: Journal, tasks: Iterable[KeptTask], any_of: str
    ) -> tuple[str, ...]:
        """Each code of each task once: a flow may have many calls of it."""
        here = {(task.label, task.code): task for task in tasks}
        kept = cache(partial(kept_parts, journal.path))
        codes = {task.code: task for task in here.values()}
        own = {code: _own_parts(journal.path, task) for code, task in codes.items()}
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        known = journal.codes()
        self._known = {code for codes in known.values() for code in codes}
        for label, code in here:
            before = {c: n for c, n in known.get(label, {}).items() if c not in own}
            if before and code not in self._known:
                why = _why(own[code], map(kept, [*before][: -_MAX_COMPARED - 1 : -1]))
                found[why or any_of][label] += sum(before.values())
        return tuple(_note(why, labels, journal.name) for why, labels in found.items())


def _own_parts(journal: Path, task: KeptTask) -> KeyParts:
    """As they are kept in the journal; those of a new code are kept now."""
    parts = kept_parts(journal, task.code)
    if not parts and (parts := task.parts()):
        keep_parts(journal, task.code, parts)
    return parts


def _why(own: KeyParts, newest_first: Iterable[KeyParts]) -> str:
    """What changed since the code that is the most alike, and of equals since the newest; "" if
    that is not known."""
    found = [changes(before, own) for before in newest_first]
    return _listed(min(filter(None, found), key=len, default=()))


def _note(why: str, labels: Mapping[str, int], place: str) -> str:
    tasks, runs = ("task", "runs") if len(labels) == 1 else ("tasks", "run")
    named, count = _listed(tuple(map(repr, labels))), sum(labels.values())
    results = "1 result of before is" if count == 1 else f"{count} results of before are"
    return f"{tasks} {named} {runs} again: {why} changed; {results} in {place}"


def _listed(words: tuple[str, ...]) -> str:
    if len(words) > _NAMED + 1:
        words = (*words[:_NAMED], f"{len(words) - _NAMED} more")
    *most, last = words or ("",)
    return f"{', '.join(most)} and {last}" if most else last
