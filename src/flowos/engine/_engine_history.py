"""What runs of a flow took on each engine, by the sizes of its values; kept for later programs."""

import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from flowos._user_folders import cache_folder
from flowos.engine.flow._sites import size_in_bytes
from flowos.engine.results._value_digest import Digester, NoDigest
from flowos.model import ChosenEngines, EnginePlan, EngineSite, SiteNote, from_plain, to_plain
from flowos.plan import Engines, TriedEngines, next_engines, planned

_NEWEST = 5
SIZES = 200
NOTED, _NOTED_SECONDS = 64, 0.05
"""Of so many runs one is noted, once engines are chosen, and not more often: it takes 0.3 ms."""
Size = str
"""Of all inputs of a flow, about: see `size_of`."""


def size_of(values: Sequence[Any]) -> Size:
    """Of arrays their bytes, of integers their value, in steps of a factor of 1.4."""
    return " ".join(map(_step, map(size_in_bytes, values)))


def _step(size: int | None) -> str:
    return "-" if size is None else str(round(2 * math.log2(abs(size) + 1)))


class EngineHistory:
    """Of one flow on one node. Any thread may use it."""

    def __init__(self, sites: Sequence[EngineSite], node: str) -> None:
        self._sites = sites
        self._lock = threading.Lock()
        self._path = _path(sites, node)
        self._seen: dict[Size, _Seen] = _read(self._path)
        self._changed = False
        self._chosen: dict[tuple[int | None, ...], ChosenEngines] = {}
        self.turns = count(1)
        self._next_noted = 0.0
        self.missing: dict[str, None] = {}

    def begin(self, values: Sequence[Any], turn: int | None = None) -> ChosenEngines:
        """The engines of a run that begins. Once they are chosen, few runs are noted.

        turn: its number, of `turns`; taken here by default.
        """
        key = tuple(map(size_in_bytes, values))
        chosen = self._chosen.get(key)
        turn = next(self.turns) if turn is None else turn
        if chosen is not None and (turn % NOTED or monotonic() < self._next_noted):
            return chosen
        with self._lock:
            self._next_noted = monotonic() + _NOTED_SECONDS
            size = size_of(values)
            engines, state = self._of(size).begin(self._sites)
            if state == "chosen":
                if len(self._chosen) > SIZES:
                    self._chosen.clear()
                self._chosen[key] = ChosenEngines(size, engines, noted=False)
            return ChosenEngines(size, engines)

    def end(self, notes: Sequence[SiteNote]) -> None:
        """A run is over, with a note of each site."""
        missing = {note.missing: None for note in notes if note.missing}
        with self._lock:
            if missing:
                self._chosen.clear()
                self.missing.update(missing)
            if len(notes) == len(self._sites):
                self._changed |= self._of(notes[0].size).end(notes)

    def plan(self, values: Sequence[Any]) -> EnginePlan:
        with self._lock:
            return self._of(size_of(values)).plan(self._sites)

    def keep(self) -> None:
        """Write it, if there is a place; the last one to write is read."""
        with self._lock:
            if not self._changed or self._path is None:
                return
            self._changed = False
            newest = list(self._seen.items())[-SIZES:]
            text = json.dumps({size: seen.plain() for size, seen in newest})
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = self._path.with_suffix(f".{os.urandom(4).hex()}")
            new.write_text(text, encoding="utf-8")
            new.replace(self._path)

    def _of(self, size: Size) -> "_Seen":
        return self._seen.setdefault(size, _Seen({}, {}))


class _Seen:
    """Runs with values of one size."""

    def __init__(
        self, tried: dict[Engines, TriedEngines], notes: dict[tuple[int, str], list[SiteNote]]
    ) -> None:
        self._tried, self._notes = tried, notes

    def begin(self, sites: Sequence[EngineSite]) -> tuple[Engines, str]:
        engines, state = next_engines(sites, self._tried, self._notes)
        seen = self._tried.get(engines, TriedEngines())
        self._tried[engines] = TriedEngines(seen.begun + 1, seen.seconds)
        return engines, state

    def end(self, notes: Sequence[SiteNote]) -> bool:
        """A cold one says nothing, and so do those of an engine that is missing, from then on."""
        for number, note in enumerate(notes):
            if note.missing:
                self._forget(number, note.asked)
        if any(note.cold for note in notes):
            asked = tuple(note.asked for note in notes)
            before = self._tried.get(asked, TriedEngines())
            self._tried[asked] = TriedEngines(max(0, before.begun - 1), before.seconds)
            return False
        for number, note in enumerate(notes):
            seen = self._notes.setdefault((number, note.engine), [])
            seen[:] = [*seen, note][-_NEWEST:]
        ran = tuple(note.engine for note in notes)
        before = self._tried.get(ran, TriedEngines())
        took = sum(note.seconds for note in notes)
        self._tried[ran] = TriedEngines(before.begun, (*before.seconds, took)[-_NEWEST:])
        return True

    def _forget(self, number: int, engine: str) -> None:
        self._notes.pop((number, engine), None)
        for choice in [each for each in self._tried if each[number] == engine]:
            self._tried[choice] = TriedEngines(self._tried[choice].begun)

    def plan(self, sites: Sequence[EngineSite]) -> EnginePlan:
        return planned(sites, self._tried, self._notes)

    def plain(self) -> dict[str, Any]:
        tried = [[k, v.begun, v.seconds] for k, v in self._tried.items() if v.seconds]
        notes = [[*key, [to_plain(note) for note in seen]] for key, seen in self._notes.items()]
        return {"tried": tried, "notes": notes}


def _seen(plain: Mapping[str, Any]) -> _Seen:
    tried = {tuple(k): TriedEngines(begun, tuple(s)) for k, begun, s in plain["tried"]}
    notes = {
        (number, engine): [from_plain(SiteNote, each) for each in seen]
        for number, engine, seen in plain["notes"]
    }
    return _Seen(tried, notes)


def _read(path: Path | None) -> dict[Size, _Seen]:
    """Nothing where it is of another version, or torn."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        if path is not None:
            plain = json.loads(path.read_bytes())
            return {size: _seen(each) for size, each in plain.items()}
    return {}


def _path(sites: Sequence[EngineSite], node: str) -> Path | None:
    """By code, wiring and node; None where code has no digest: then nothing is kept."""
    digester = Digester()
    try:
        for site in sites:
            digester.items(b"site", (site.label, site.engines, site.sources, site.read))
            for body in site.bodies:
                digester.add(body.fun)
    except NoDigest:
        return None
    digester.put(b"node", node.encode())
    name = digester.digest().hex()[:32]
    return cache_folder() / "engines" / f"{name}.json"
