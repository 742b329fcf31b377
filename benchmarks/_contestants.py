"""The engines that benchmarks/engine.py compares, each run in a process of its own.

`python benchmarks/_contestants.py NAME SECONDS` starts engine NAME, repeats each case for about
SECONDS (three times at least), checks that a wrong value is refused where ports are checked, and
prints one JSON object. Exit 77: the engine is not installed. Without arguments: the names.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from _contest_peers import PEERS
from _contest_tasks import (
    ARRAY_BYTES,
    HOPS,
    ITEMS,
    TASKS,
    TASKS_OF,
    add,
    increment,
    produce,
    subtract,
    touch,
)
from _taking_part import Cases, Contestants, take_part


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


CONTESTANTS: Contestants = {
    "flowos inline": flowos("inline"),
    "flowos threads": flowos("thread"),
    "flowos processes": flowos("process"),
    **PEERS,
}


if __name__ == "__main__":
    sys.exit(take_part(CONTESTANTS, TASKS_OF, sys.argv[1:]))
