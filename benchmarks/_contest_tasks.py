"""What every contestant of benchmarks/engine.py computes, and how much of it."""

from collections.abc import Callable, Mapping
from typing import Any

TASKS, HOPS, ITEMS = 1000, 200, 10_000
CHUNK = 64
ARRAY_BYTES = 100_000_000
TASKS_OF = {
    "two": 1,
    "wide": TASKS,
    "deep": TASKS,
    "loop": TASKS,
    "map": ITEMS,
    "hop": HOPS,
    "array": 1,
}
"""Tasks that the seconds of a case are shared by; a flow of two counts as one run."""
WORKERS = 2

Cases = Mapping[str, Callable[[], object]]
"""Case -> what runs it once and gives its result, the same from every engine."""


def add(x: int, y: int) -> int:
    return x + y


def subtract(x: int, y: int) -> int:
    return x - y


def increment(x: int) -> int:
    return x + 1


_made: Any = None


def produce(count: int) -> Any:
    """The same array each time, so that making it is not what is measured."""
    global _made
    if _made is None:
        import numpy

        _made = numpy.ones(count)
    return _made


def touch(values: Any) -> float:
    """Read something of every page."""
    return float(values[::512].sum())
