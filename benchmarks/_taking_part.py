"""What each contestant of a contest does in its process, see `_contests.py`."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from _contests import NOT_HERE

MIN_REPETITIONS, MAX_REPETITIONS = 3, 2000

Cases = Mapping[str, Callable[[], object]]
"""Case -> a function that runs it once and returns its result, equal for every engine.

One that is called `refusals` is run once, and gives their number.
"""
Contestants = Mapping[str, Callable[[], AbstractContextManager[Cases]]]


def take_part(
    contestants: Contestants,
    tasks_of: Mapping[str, int],
    words: list[str],
    processes: Callable[[], Collection[int]] = lambda: ours(),
) -> int:
    """The command line of a program of contestants. Returns its exit code.

    tasks_of: number of tasks in a case. processes: those that count as the engine's.
    """
    if not words:
        print(json.dumps(list(contestants)))
        return 0
    name, seconds = words
    began = time.perf_counter()
    try:
        with contestants[name]() as cases:
            next(iter(cases.values()))()
            start_seconds = time.perf_counter() - began
            pids = processes()
            memory = sum(map(pss_bytes, pids))
            refused = cases.get("refusals", int)()
            timed = {
                case: repeated(run, float(seconds))
                for case, run in cases.items()
                if case != "refusals"
            }
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return NOT_HERE
    answer = {
        "start_seconds": start_seconds,
        "pss_bytes": memory,
        "processes": len(pids),
        "refused": refused,
        "cases": {
            case: {"seconds": s, "checksum": c, "tasks": tasks_of[case]}
            for case, (s, c) in timed.items()
        },
    }
    print(json.dumps(answer))
    return 0


def ours() -> set[int]:
    """This process and its descendants."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def pss_bytes(pid: int) -> int:
    """Proportional memory of a process; 0 if it is gone."""
    try:
        words = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        return int(words[words.index("Pss:") + 1]) * 1024
    except (OSError, ValueError):
        return 0


def repeated(run: Callable[[], object], seconds: float) -> tuple[list[float], str]:
    """Seconds of each repetition, and the checksum of the result, which must not change."""
    checksum = hashlib.sha256(repr(run()).encode()).hexdigest()[:16]
    taken: list[float] = []
    until = time.perf_counter() + seconds
    while len(taken) < MIN_REPETITIONS or time.perf_counter() < until:
        began = time.perf_counter()
        result = run()
        taken.append(time.perf_counter() - began)
        if len(taken) == MAX_REPETITIONS:
            break
    if hashlib.sha256(repr(result).encode()).hexdigest()[:16] != checksum:
        raise SystemExit("the last result differs from the first")
    return taken, checksum
