"""What `engines.py` has to reach: each figure with its target, and whether it holds."""

from collections.abc import Callable, Iterator
from typing import Any

Read = Callable[[dict[str, Any]], float]


def _median(*way: str) -> Read:
    return lambda found: float(_at(found, *way)["median"])


def _value(*way: str) -> Read:
    return lambda found: float(_at(found, *way))


def _at(found: Any, *way: str) -> Any:
    for name in way:
        found = found[name]
    return found


def _more_than_pyopencl(found: dict[str, Any]) -> float:
    works = found["opencl"]["works_us"]
    return float(works["task's function"]["median"] - works["pyopencl"]["median"])


AT_MOST: tuple[tuple[str, Read, float], ...] = (
    ("a task with arrays, us", _median("check_us", "arrays"), 0.7),
    ("C++ call with 3 arrays, us", _median("call_us", "invoker, given output"), 0.25),
    ("first use of C++, s", _median("first_s", "compiled"), 1.0),
    ("the same, cached, s", _median("first_s", "cached"), 0.005),
    ("OpenCL, us that a call works more than pyopencl's", _more_than_pyopencl, 2.0),
    ("Verilator, s to build", _value("hdl", "build_s", "library kept"), 5.0),
    *(
        (f"empty tasks, {way}, {shape}, of StarPU", _value("empty", "of_starpu", way, shape), 1.0)
        for way in ("inline", "threads")
        for shape in ("wide", "chain")
    ),
    *(
        (f"either at {floats}, of the best engine", _value("either", floats, "of_best"), 1.1)
        for floats in ("1000", "10000", "100000", "1000000", "16000000")
    ),
)
AT_LEAST: tuple[tuple[str, Read, float], ...] = (
    ("2 C++ tasks at once, times", _value("two", "speedup"), 1.8),
    ("triad, new outputs, of OpenMP", _value("triad", "of_openmp"), 0.95),
    ("triad, outputs reused, of OpenMP", _value("triad", "of_program"), 0.95),
    ("Verilator, M cycles a second", _value("hdl", "Mcycles_per_s"), 30.0),
)


def judged(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By figure. What could not be measured here has neither `seen` nor `holds`."""
    return dict(_judged(found))


def _judged(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for bound, sign, rows in (("at most", 1, AT_MOST), ("at least", -1, AT_LEAST)):
        for figure, read, target in rows:
            try:
                seen = read(found)
            except KeyError:
                yield figure, {bound: target}
            else:
                holds = sign * seen <= sign * target
                yield figure, {bound: target, "seen": seen, "holds": holds}
