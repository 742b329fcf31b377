"""Runs a case in interleaved rounds, and checks its claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bandwidth import bytes_per_second
from building import NotHere, say
from contestants import ALL, Contestant, Options, command
from problems import Problem
from promises import Case, Faster
from trial import TurnFailed, turn

Found = dict[str, Any]


@dataclass(frozen=True)
class Table:
    folder: Path
    cores: int


def fight(table: Table, case: Case, problem: Problem, rounds: int) -> Found:
    """All turns of all contestants, what failed, and the setting of each."""
    failed: dict[str, str] = {}
    turns: dict[str, list[Found]] = {}
    best: dict[str, Options] = {}
    entrants = list(_entrants(table, case, failed))
    for number in range(rounds):
        say(f"{case.name}: round {number + 1} of {rounds}")
        b = problem.right_hand_side(number)
        for contestant, words in rotated(entrants, number):
            name = contestant.name
            if name in failed or (number and name in case.slow):
                continue
            variants = contestant.variants if number == 0 else (best[name],)
            try:
                fastest = _fastest(table, contestant, words, variants, (problem, b))
            except TurnFailed as reason:
                failed[name] = str(reason)
                continue
            best[name] = tuple(fastest["options"])
            turns.setdefault(name, []).append({**fastest, "round": number})
    return {"case": asdict(case), "turns": turns, "failed": failed, "options": best}


def _entrants(
    table: Table, case: Case, failed: dict[str, str]
) -> Iterator[tuple[Contestant, Sequence[str]]]:
    for name in case.contestants:
        try:
            yield ALL[name], command(ALL[name], table.cores, table.folder)
        except NotHere as reason:
            failed[name] = str(reason)


def rotated(entrants: Sequence[Any], number: int) -> Sequence[Any]:
    """Rotate the order, so that no entrant always follows the same one."""
    start = number % max(1, len(entrants))
    return [*entrants[start:], *entrants[:start]]


def _fastest(
    table: Table,
    contestant: Contestant,
    words: Sequence[str],
    variants: Sequence[Options],
    asked: tuple[Problem, Path],
) -> Found:
    """The best turn over the options. Raises TurnFailed if none gave an answer."""
    taken, failed = [], TurnFailed("it has no options")
    for options in variants:
        try:
            taken.append(_taken(table, contestant, words, options, asked))
        except TurnFailed as reason:
            failed = reason
    if not taken:
        raise failed
    return min(taken, key=lambda one: float(one["total_seconds"]))


def _taken(
    table: Table,
    contestant: Contestant,
    words: Sequence[str],
    options: Options,
    asked: tuple[Problem, Path],
) -> Found:
    cores = contestant.cores_of(table.cores)
    ours = contestant.program == "ours"
    bandwidth = {"bandwidth": bytes_per_second(table.folder, cores)} if ours else {}
    threads = 1 if contestant.ranks else cores
    found: Found = turn(words, options, *asked, threads)
    return {**found, **bandwidth, "options": list(options)}


def summary(case: Case, found: Found) -> Found:
    """The row of the table: every contestant, and whether the claims hold."""
    ours = found["turns"].get("ours", ())
    contestants = {name: _summary(turns, ours) for name, turns in found["turns"].items()}
    return {
        "case": case.name,
        "title": case.title,
        "contestants": contestants,
        "failed": found["failed"],
        "options": found["options"],
        "verdicts": list(verdicts(case, contestants, found["failed"])),
    }


def _summary(turns: Sequence[Found], ours: Sequence[Found]) -> Found:
    """Medians over the rounds; of ratios, the median of each round's ratio."""
    total = [turn["total_seconds"] for turn in turns]
    ours_in = {turn["round"]: turn["total_seconds"] for turn in ours}
    ratios = [t["total_seconds"] / ours_in[t["round"]] for t in turns if t["round"] in ours_in]
    each = [turn["solve_seconds"] / max(1, turn["iterations"]) for turn in turns]
    limits = [
        seconds * turn["bandwidth"] / turn["bytes_per_iteration"]
        for seconds, turn in zip(each, turns, strict=True)
        if turn.get("bytes_per_iteration") and "bandwidth" in turn
    ]
    return {
        "total_seconds": median(total),
        "spread": [min(total), max(total)],
        "setup_seconds": median(turn["setup_seconds"] for turn in turns),
        "seconds_per_iteration": median(each),
        "iterations": median(turn["iterations"] for turn in turns),
        "residual": max(turn["residual"] for turn in turns),
        "memory_bytes": max(turn["memory_bytes"] for turn in turns),
        "times_of_ours": [median(ratios), min(ratios), max(ratios)] if ratios else None,
        "times_of_limit": median(limits) if limits else None,
        "bandwidth": median(t["bandwidth"] for t in turns) if "bandwidth" in turns[0] else None,
        "others": max(turn["others"] for turn in turns),
        "rounds": len(turns),
    }


def verdicts(
    case: Case, contestants: Mapping[str, Found], failed: Mapping[str, str]
) -> Iterator[Found]:
    """Each claim of a case; it does not hold if a contestant that it needs failed."""
    for faster in case.faster:
        if faster.than in case.contestants:
            yield _faster(faster, contestants, failed)
    for name, high in case.times_of_limit.items():
        if name not in case.contestants:
            continue
        what = f"{ALL[name].title}: at most {high:.2f}x the limit of its bytes"
        yield _verdict(what, contestants.get(name, {}).get("times_of_limit"), high=high)
    ours = contestants.get("ours", {})
    if case.setup_seconds is not None:
        what = f"set-up in {case.setup_seconds:g} s"
        yield _verdict(what, ours.get("setup_seconds"), high=case.setup_seconds)
    if case.memory_bytes is not None:
        what = f"within {case.memory_bytes / 2**30:g} GiB"
        yield _verdict(what, ours.get("memory_bytes"), high=case.memory_bytes)


def _faster(faster: Faster, contestants: Mapping[str, Found], failed: Mapping[str, str]) -> Found:
    other = ALL[faster.than].title
    goal = f" (goal {faster.goal:g}x)" if faster.goal else ""
    what = f"{faster.times:g}x faster than {other}{goal}"
    ratios = contestants.get(faster.than, {}).get("times_of_ours")
    verdict = _verdict(what, ratios[0] if ratios else None, low=faster.times)
    if faster.than in failed:
        return {**verdict, "holds": None, "why": f"{other} took no part: {failed[faster.than]}"}
    return verdict


def _verdict(
    what: str, value: float | None, *, low: float | None = None, high: float | None = None
) -> Found:
    """Whether a claim holds; without a value it does not."""
    if value is None:
        return {"what": what, "value": None, "holds": False, "why": "it was not measured"}
    holds = (low is None or value >= low) and (high is None or value <= high)
    return {"what": what, "value": value, "holds": holds, "why": ""}
