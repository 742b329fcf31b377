"""The ways to run tasks on two nodes of Slurm that benchmarks/slices.py compares.

`python benchmarks/_slice_contestants.py NAME SECONDS`, see `_taking_part.py`.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from _contest_tasks import ARRAY_BYTES, increment, touch
from _slice_peers import HOPS, ITEMS, PEERS, allocation, produce
from _taking_part import Cases, Contestants, take_part

TASKS_OF = {"hop": HOPS, "wide": ITEMS, "array": 1, "command": 1, "hold": 1}


def all_processes() -> set[int]:
    return {int(each.name) for each in Path("/proc").glob("[0-9]*")}


STRANGERS = all_processes()


def started() -> set[int]:
    """Processes that were not there before, on all nodes: their namespaces lie below ours."""
    return all_processes() - STRANGERS - {os.getpid()}


def flowos(**on: Any) -> Callable[[], AbstractContextManager[Cases]]:
    @contextmanager
    def contestant() -> Iterator[Cases]:
        import flowos as fo

        def port(function: Any, takes: Any, gives: Any) -> Any:
            task = typed(fo, function, takes, gives)
            return fo.flow_output(task(fo.flow_input("value", takes)))

        floats = fo.array(fo.float64)
        one = port(increment, fo.int64, fo.int64)
        makes, touches = port(produce, fo.int64, floats), port(touch, floats, fo.float64)
        true = fo.flow_output(fo.command(["true"])())
        with slices(fo, on) as run_map:
            run, wide = run_map

            def array() -> object:
                (made,) = run(makes, ARRAY_BYTES // 8)
                return list(run(touches, made))

            cases: dict[str, Callable[[], object]] = {
                "hop": lambda: [run(one, i)[0] for i in range(HOPS)],
                "wide": lambda: [value for (value,) in wide(one, range(ITEMS))],
                "array": array,
                "command": lambda: [run(true) and None],
            }
            if on:
                cases["hold"] = lambda: fo.slice(**on).free()
            yield cases

    return contestant


@contextmanager
def flowos_in_ray() -> Iterator[Cases]:
    """The array is read on both nodes at once."""
    import flowos as fo

    value, floats = fo.flow_input("value", fo.int64), fo.array(fo.float64)
    adds, makes, reads = (
        typed(fo, function, takes, gives)
        for function, takes, gives in (
            (increment, fo.int64, fo.int64),
            (produce, fo.int64, floats),
            (touch, floats, fo.float64),
        )
    )
    made = makes(value)
    one, both = fo.flow_output(adds(value)), fo.flow_output(reads(made), reads(made))
    with slices(fo, {"pool": "box", "nodes": 2, "workers": "ray"}) as (run, wide):
        yield {
            "hop": lambda: [run(one, i)[0] for i in range(HOPS)],
            "wide": lambda: [value for (value,) in wide(one, range(ITEMS))],
            "array": lambda: run(both, ARRAY_BYTES // 8)[:1],
        }


def typed(fo: Any, function: Any, takes: Any, gives: Any) -> Any:
    """Its task."""
    (name,) = function.__code__.co_varnames[: function.__code__.co_argcount]
    function.__annotations__ = {name: takes, "return": gives}
    return fo.task(function)


@contextmanager
def slices(fo: Any, on: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """How to run a flow, and to map one: on what is held, or on this machine's workers."""
    if on:
        with fo.slice(cores=1, fuse="none", **on) as held:
            yield held.run, held.map
        return
    made: dict[Any, Any] = {}

    def of(flow: Any) -> Any:
        if flow not in made:
            made[flow] = fo.slice(flow, workers="process", cores=2, fuse="none")
        return made[flow]

    try:
        yield lambda flow, *values: of(flow).run(*values), lambda flow, items: of(flow).map(items)
    finally:
        for each in made.values():
            each.free()


CONTESTANTS: Contestants = {
    "flowos local": flowos(),
    "flowos slurm": flowos(pool="box", nodes=2),
    "flowos ray": flowos_in_ray,
    **PEERS,
}


def main(words: list[str]) -> int:
    if words[:1] == ["mpi4py"] and "PMIX_RANK" not in os.environ:
        import_module("mpi4py")
        ranks = ("--mpi=pmix", "-N2", "-n3", "--overcommit")
        with allocation() as held:
            line = held.words(*ranks, sys.executable, "-m", "mpi4py.futures", __file__, *words)
            return subprocess.run(line).returncode
    return take_part(CONTESTANTS, TASKS_OF, words, started)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
