"""The engines that benchmarks/engine.py compares, each run in a process of its own.

`python benchmarks/_contestants.py NAME SECONDS` starts engine NAME, repeats each case for about
SECONDS (three times at least), checks that a wrong value is refused where ports are checked, and
prints one JSON object. Exit 77: the engine is not installed. Without arguments: the names.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from _contest_peers import PEERS
from _contest_tasks import (
    ARRAY_BYTES,
    HOPS,
    ITEMS,
    TASKS,
    TASKS_OF,
    Cases,
    add,
    increment,
    produce,
    subtract,
    touch,
)

NOT_HERE = 77
MIN_REPETITIONS, MAX_REPETITIONS = 3, 2000


def flowos(workers: str) -> Callable[[], AbstractContextManager[Cases]]:
    @contextmanager
    def contestant() -> Iterator[Cases]:
        import flowos as fo

        adds, subtracts, increments = fo.task(add), fo.task(subtract), fo.task(increment)
        a, b, c = (fo.flow_input(name, fo.int64) for name in "abc")
        chain = a
        for _ in range(TASKS):
            chain = adds(chain, b)
        alternating = a
        for _ in range(HOPS):
            alternating = adds(alternating, b)
        makes = fo.task(name="produce")(typed(produce, count=int, back=fo.array(fo.float64)))
        touches = fo.task(name="touch")(typed(touch, values=fo.array(fo.float64), back=float))
        n = fo.flow_input("n", fo.int64)
        on: dict[str, Any] = {"workers": workers}
        with (
            fo.slice(subtracts(adds(a, b), c), **on) as two,
            fo.slice([adds(a, i) for i in range(TASKS)], **on) as wide,
            fo.slice(chain, **on) as deep,
            fo.slice(increments(a), **on) as one,
            fo.slice(alternating, fuse="none", **on) as hop,
            fo.slice(touches(makes(n)), fuse="none", **on) as array,
        ):
            cases: dict[str, Callable[[], object]] = {
                "refusals": lambda: refuses(two, wide, deep),
                "two": lambda: two.run(1, 2, 3),
                "wide": lambda: wide.run(1),
                "deep": lambda: deep.run(1, 2),
                "loop": lambda: [one.run(i)[0] for i in range(TASKS)],
                "map": lambda: [value for (value,) in one.map(range(ITEMS))],
            }
            if workers == "process":
                cases["hop"] = lambda: hop.run(1, 2)
                cases["array"] = lambda: array.run(ARRAY_BYTES // 8)
            yield cases

    return contestant


def typed(fun: Any, *, back: object, **types: object) -> Any:
    """The function with port types for annotations."""
    fun.__annotations__ = {**types, "return": back}
    return fun


def refuses(*slices: Any) -> int:
    """Test that the timed slices check types: wrong inputs and overflowing results are refused."""
    from flowos import ValueRefused

    refused = 0
    for one in slices:
        for wrong in (2**63, 1.0, 2**63 - 1):
            values = [wrong] + [1] * (len(one.flow.inputs) - 1)
            try:
                one.run(*values)
            except ValueRefused:
                refused += 1
            else:
                raise SystemExit(f"{one} took {wrong!r}")
    return refused


CONTESTANTS: Mapping[str, Callable[[], AbstractContextManager[Cases]]] = {
    "flowos inline": flowos("inline"),
    "flowos threads": flowos("thread"),
    "flowos processes": flowos("process"),
    **PEERS,
}


def pss_bytes() -> tuple[int, int]:
    """Proportional memory of this process and its descendants, and their number."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    ours = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in ours} - ours:
        ours |= more
    total = 0
    for pid in ours:
        try:
            words = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
            total += int(words[words.index("Pss:") + 1]) * 1024
        except (OSError, ValueError):
            continue
    return total, len(ours)


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


def main(name: str, seconds: float) -> int:
    began = time.perf_counter()
    try:
        with CONTESTANTS[name]() as cases:
            next(iter(cases.values()))()
            start_seconds = time.perf_counter() - began
            memory, processes = pss_bytes()
            refused = cases.get("refusals", int)()
            timed = {
                case: repeated(run, seconds) for case, run in cases.items() if case != "refusals"
            }
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return NOT_HERE
    answer = {
        "start_seconds": start_seconds,
        "pss_bytes": memory,
        "processes": processes,
        "refused": refused,
        "cases": {
            case: {"seconds": s, "checksum": c, "tasks": TASKS_OF[case]}
            for case, (s, c) in timed.items()
        },
    }
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(json.dumps(list(CONTESTANTS)))
    else:
        sys.exit(main(sys.argv[1], float(sys.argv[2])))
