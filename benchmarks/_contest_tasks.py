"""The tasks of benchmarks/engine.py, equal for all contestants, and their numbers."""

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
"""Number of tasks in a case, by which its seconds are divided; a flow of two counts as one."""
WORKERS = 2


def add(x: int, y: int) -> int:
    return x + y


def subtract(x: int, y: int) -> int:
    return x - y


def increment(x: int) -> int:
    return x + 1


_made: Any = None


def produce(count: int) -> Any:
    """Return the same array each time, so that creating it is not measured."""
    global _made
    if _made is None:
        import numpy

        _made = numpy.ones(count)
    return _made


def touch(values: Any) -> float:
    """Read something of every page."""
    return float(values[::512].sum())
