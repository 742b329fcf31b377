"""Runs a case: samples are checked, settings swept, then contestants measured in rounds."""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from cases import FIRST_BATCH_SECONDS, Case, named
from entrants import (
    Entrant,
    Setting,
    Table,
    first_seconds,
    keeps,
    limit_seconds,
    steady,
    taking_part,
    thousand,
    turn,
)
from peers import BY_ITSELF, OURS
from places import NotHere, say
from turns import TurnFailed

LOOK_SECONDS, SWEEP_SECONDS = 1.0, 3.0
"""Each setting is tried; the best two, if near each other, are tried again for longer."""
NEAR = 1.15
KEEPERS_BATCHES, KEEPERS_SECONDS = 200, 10.0
WORSE_IN_A_ROW = 2
GOES_ON = 1.25

Found = dict[str, Any]


def fight(table: Table, case: Case, rounds: int, settings: "Settings") -> Found:
    """The results of a case: per contestant its turns, the limits, what failed."""
    failed: dict[str, str] = {}
    chosen: dict[str, Setting] = {}
    checks: dict[str, Any] = {}
    for entrant in taking_part(table, case):
        say(f"{case.name}: {entrant.contestant.title}: settings, and what it delivers")
        try:
            chosen[entrant.name] = settings.best(table, case, entrant)
            checks[entrant.name] = checked(table, case, entrant, chosen[entrant.name])
        except (TurnFailed, NotHere) as reason:
            failed[entrant.name] = str(reason)
    entrants = [e for e in taking_part(table, case) if e.name in checks]
    limits: list[float] = []
    turns: dict[str, list[Found]] = {}
    for number in range(rounds):
        say(f"{case.name}: round {number + 1} of {rounds}")
        is_last = number == rounds - 1
        those = rotated(going_on(case, entrants, turns, is_last), number)
        found = table.journal.once(
            f"{case.name}: round {number + 1}", partial(one_round, table, case, those, chosen)
        )
        limits.append(found["limit_seconds"])
        failed |= found["failed"]
        for name, turned in found["turns"].items():
            turns.setdefault(name, []).append(turned)
    return {
        "case": asdict(case),
        "limits": limits,
        "settings": {name: asdict(setting) for name, setting in chosen.items()},
        "swept": {name: settings.swept(case, name) for name in chosen},
        "checks": checks,
        "turns": turns,
        "failed": failed,
    }


def one_round(
    table: Table, case: Case, entrants: Sequence[Entrant], chosen: Mapping[str, Setting]
) -> Found:
    """Measure the limit, and a turn of each contestant, one after the other."""
    limit = limit_seconds(table, case)
    turns: dict[str, Found] = {}
    failed: dict[str, str] = {}
    for entrant in entrants:
        try:
            found = turn(table, case, entrant, chosen[entrant.name])
            turns[entrant.name] = {**found, "limit_seconds": limit}
        except TurnFailed as reason:
            failed[entrant.name] = str(reason)
    return {"limit_seconds": limit, "turns": turns, "failed": failed}


def going_on(
    case: Case, entrants: Sequence[Entrant], turns: Mapping[str, Sequence[Found]], is_last: bool
) -> Sequence[Entrant]:
    """All entrants in the first round; in the second ours, the best two others and those near them;
    afterwards and in the last round only ours, as the claims are about it."""
    if not turns:
        return entrants
    if is_last or max(map(len, turns.values())) > 1:
        return [entrant for entrant in entrants if entrant.contestant is OURS]
    seconds = {
        name: statistics.median(thousand(case, turn) for turn in some)
        for name, some in turns.items()
    }
    others = sorted(value for name, value in seconds.items() if name != OURS.name)
    most = GOES_ON * others[:2][-1] if others else 0.0
    return [e for e in entrants if e.contestant is OURS or seconds.get(e.name, most + 1) <= most]


def rotated(entrants: Sequence[Entrant], number: int) -> Sequence[Entrant]:
    """Rotate the order, so that no entrant always follows the same one."""
    start = number % max(1, len(entrants))
    return [*entrants[start:], *entrants[:start]]


def checked(table: Table, case: Case, entrant: Entrant, setting: Setting) -> Found:
    """Check the samples of somewhat more than an epoch, from remote storage without its delays,
    once for each kind of storage. Raises TurnFailed if a sample is not one of the data set's."""
    kind = f"{case.store}, {'decoded' if case.decoded else 'raw'}"
    return table.journal.once(
        f"{entrant.name} checked, {kind}", partial(_looked_at, table, case, entrant, setting)
    )


def _looked_at(table: Table, case: Case, entrant: Entrant, setting: Setting) -> Found:
    near = replace(case, round_trip_ms=0, mbit=10_000, cold=False, scaled_from=0)
    batches = -(-table.data.count // 32) + (0 if case.decoded else 40)
    if case.decoded:
        batches = min(batches, 100)
    found = turn(table, near, entrant, setting, batches=batches, seconds=60.0, check=True)
    checks: Found = found["checks"]
    if checks.get("unknown"):
        raise TurnFailed(f"{checks['unknown']} of its samples are not the data set's")
    if not case.decoded:
        checks["same_checksum"] = checks["checksum"] == table.data.checksum
    return checks


class Settings:
    """The best setting of each contestant in each case, swept once and stored in a file."""

    def __init__(self, file: Path, data: str, again: bool) -> None:
        self.file = file
        self.data = data
        self.known: dict[str, Any] = {}
        if file.exists():
            self.known = json.loads(file.read_text())
        if again:
            self.known = {k: v for k, v in self.known.items() if not k.startswith(f"{data}/")}

    def _key(self, case: Case, name: str) -> str:
        return f"{self.data}/{case.settings_of or case.name}/{name}"

    def swept(self, case: Case, name: str) -> list[Found]:
        """The sweep of this very case."""
        known: list[Found] = self.known.get(self._key(case, name), [])
        return [] if case.settings_of else known

    def best(self, table: Table, case: Case, entrant: Entrant) -> Setting:
        """The best setting. Raises TurnFailed if no setting delivered a batch."""
        if entrant.contestant is OURS:
            return Setting(workers=BY_ITSELF)
        key = self._key(case, entrant.name)
        swept_in = sized(named(case.settings_of), table) if case.settings_of else case
        name = f"{swept_in.name}: {entrant.name} swept"
        find = partial(sweep, table, swept_in, entrant)
        points = self.known.get(key) or table.journal.once(name, find)
        good = [point for point in points if "seconds" in point]
        if not good:
            raise TurnFailed(points[-1]["failed"])
        self.known[key] = points
        self.file.write_text(json.dumps(self.known, indent=1))
        best = min(good, key=lambda point: float(point["seconds"]))
        return Setting(workers=best["workers"], options=best["options"])


def sized(case: Case, table: Table) -> Case:
    """The case, smaller for --quick, which only tests that everything runs."""
    return replace(case, batches=case.batches // 10) if table.quick else case


def sweep(table: Table, case: Case, entrant: Entrant) -> list[Found]:
    """Seconds for the case, the first batch included, of every setting that was tried."""
    points = list(looks(table, case, entrant))
    good = sorted((p for p in points if "seconds" in p), key=lambda p: float(p["seconds"]))
    near = [point for point in good[:2] if point["seconds"] < NEAR * good[0]["seconds"]]
    if len(near) == 1 or keeps(case, entrant.contestant):  # whose turn is long already
        return points
    for point in near:
        setting = Setting(workers=point["workers"], options=point["options"])
        again = swept_point(table, case, entrant, setting, SWEEP_SECONDS)
        if "seconds" in again:
            point.update(again)
    return points


def looks(table: Table, case: Case, entrant: Entrant) -> Iterator[Found]:
    """Try each count of workers, until more only makes it worse; then each other variant with
    the best count."""
    contestant = entrant.contestant
    first, *others = contestant.decoded if case.decoded else contestant.raw
    best, worse = Setting(workers=case.workers[0], options=first), 0
    least = float("inf")
    for workers in case.workers:
        setting = Setting(workers=workers, options=first)
        point = swept_point(table, case, entrant, setting, LOOK_SECONDS)
        yield point
        worse = 0 if point.get("seconds", least) < least else worse + 1
        if worse == 0:
            best, least = setting, point["seconds"]
        if worse == WORSE_IN_A_ROW:
            break
    for options in others:
        yield swept_point(table, case, entrant, replace(best, options=options), LOOK_SECONDS)


def swept_point(
    table: Table, case: Case, entrant: Entrant, setting: Setting, seconds: float
) -> Found:
    """For contestants with a cache, whose rate changes: the time of so many batches."""
    row: Found = {"workers": setting.workers, "options": dict(setting.options)}
    keeper = keeps(case, entrant.contestant)
    sample: Found = {"seconds": seconds}
    if keeper:
        batches = min(KEEPERS_BATCHES, case.batches)
        sample = {"seconds": KEEPERS_SECONDS, "batches": batches}
    try:
        found = turn(table, case, entrant, setting, **sample)
    except TurnFailed as reason:
        return {**row, "failed": str(reason)}
    if found["batches"] < 2:
        return {**row, "failed": f"one batch in {sample['seconds']:g} s"}
    whole = first_seconds(found) + steady(found) * (case.batches - 1)
    if keeper:
        whole = found["seconds"] * case.batches / found["batches"]
    return {
        **row,
        "seconds": whole,
        "first_seconds": first_seconds(found),
        "batches": found["batches"],
    }


def summary(case: Case, found: Found) -> Found:
    """The row of the table: limit, ours, ratio, whether the claim holds, and every peer."""
    contestants = {name: of_contestant(case, turns) for name, turns in found["turns"].items()}
    line: Found = {
        "case": case.name,
        "title": case.title,
        "limit": case.limit,
        "limit_seconds": statistics.median(found["limits"]) if found["limits"] else None,
        "most": case.most,
        "contestants": contestants,
        "failed": found["failed"],
    }
    ours = contestants.get("ours")
    if ours is not None:
        line["ratio"] = ours["ratio"]
        line["holds"] = ours["ratio"] <= case.most
        if case.store == "far" and case.stages:
            line["first_batch_holds"] = ours["first_seconds"] <= FIRST_BATCH_SECONDS
    return line


def of_contestant(case: Case, turns: Sequence[Mapping[str, Any]]) -> Found:
    """Medians over the rounds; the ratio to the limit is the median of the rounds' ratios."""
    seconds = [thousand(case, turn) for turn in turns]
    sent = [turn["source_bytes"] for turn in turns if turn["source_bytes"] is not None]
    return {
        "seconds": statistics.median(seconds),
        "spread": [min(seconds), max(seconds)],
        "ratio": statistics.median(
            s / turn["limit_seconds"] for s, turn in zip(seconds, turns, strict=True)
        ),
        "first_seconds": statistics.median(map(first_seconds, turns)),
        "cpu_seconds": statistics.median(
            turn["cpu_seconds"] * case.batches / turn["batches"] for turn in turns
        ),
        "consumer_seconds_per_batch": statistics.median(
            turn["consumer_cpu_seconds"] / max(1, turn["batches"] - 1) for turn in turns
        ),
        "source_bytes": statistics.median(sent) if sent else None,
        "scaled_from": turns[0]["batches"] if turns[0]["batches"] < case.batches else None,
        "rounds": len(turns),
    }
