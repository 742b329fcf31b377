"""What task bodies in other languages cost: C++ by fo.cxx, next to what else calls a C function.

All ways by turns, medians and the middle half of the rounds. `check`: a task of arrays,
against one of integers. `call`: three arrays of 16 floats, into an output that is there and into a
new one. `two`: two tasks at once against one after the other. `triad`: two C++ tasks against a
program with OpenMP. `first`: compiled, and found in the cache by a new process.
"""

import argparse
import ctypes
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flowos as fo

VECTOR = fo.array(fo.float32, ("n",))
FIXED = fo.array(fo.float32, (16,))
SOURCE = """
#include <cstdint>
extern "C" int triad(const float* b, const float* c, int64_t n, float* a) {
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
  return 0;
}
extern "C" int spin(int64_t rounds, double* y) {
  double x = 1.0;
  for (int64_t i = 0; i < rounds; ++i) x = x * 0.999 + 1.0;
  *y = x;
  return 0;
}
extern "C" int triad_omp(const float* b, const float* c, int64_t n, float* a) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
  return 0;
}
"""
TRIAD: Any = fo.cxx(SOURCE, "triad", inputs={"b": VECTOR, "c": VECTOR}, outputs={"a": VECTOR})
SPIN: Any = fo.cxx(SOURCE, "spin", inputs={"rounds": fo.int64}, outputs={"y": fo.float64})
OPENMP: Any = fo.cxx(
    SOURCE,
    "triad_omp",
    inputs={"b": VECTOR, "c": VECTOR},
    outputs={"a": VECTOR},
    flags=["-fopenmp"],
)
Way = Callable[[], object]


@fo.task
def same(v: FIXED) -> FIXED:  # type: ignore[valid-type]
    return v


@fo.task
def named(v: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return v


@fo.task
def number(v: fo.int64) -> fo.int64:
    return v


def seconds(way: Way) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def by_turns(ways: dict[str, Way], rounds: int, scale: float) -> dict[str, Any]:
    """Each way's seconds times scale: the median, and the middle half."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for turn in range(rounds):
        names = list(ways) if turn % 2 == 0 else list(reversed(ways))
        for name in names:
            took[name].append(seconds(ways[name]) * scale)
    return {
        name: {"median": statistics.median(each), "middle": statistics.quantiles(each, n=4)[::2]}
        for name, each in took.items()
    }


def repeated(way: Way, count: int) -> Way:
    def run() -> None:
        for _ in range(count):
            way()

    return run


def checks(rounds: int) -> dict[str, Any]:
    """Microseconds a task of a chain, whose function does nothing."""
    count = 1000
    ways: dict[str, Way] = {}
    array = np.zeros(16, np.float32)
    cases: list[tuple[str, Any, Any, object]] = [
        ("integers", number, fo.int64, 1),
        ("arrays", same, FIXED, array),
        ("named extents", named, VECTOR, array),
    ]
    opened = []
    for name, task, kind, value in cases:
        port = fo.flow_input("v", kind)
        for _ in range(count):
            port = task(port)
        made = fo.slice(fo.flow_output(port), workers="inline")
        opened.append(made)
        ways[name] = lambda made=made, value=value: made.run(value)  # type: ignore[misc]
    try:
        return by_turns(ways, rounds, 1e6 / count)
    finally:
        for made in opened:
            made.free()


def calls(rounds: int) -> dict[str, Any]:
    """Microseconds a call with three arrays of 16 floats."""
    from cffi import FFI

    from flowos._native import native_call
    from flowos.engine.bodies._compile import library_of

    count = 20_000
    b, c, a = np.ones(16, np.float32), np.ones(16, np.float32), np.empty(16, np.float32)
    function = TRIAD.body.fun
    function(b, c)
    path = str(library_of(function.code))
    triad = ctypes.CDLL(path).triad
    triad.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64, ctypes.c_void_p]
    address = ctypes.cast(triad, ctypes.c_void_p).value or 0
    given = native_call(address, "aaia", [], [], [], print, print)
    into = native_call(address, "aa", [], [(0, 0)], [("float32", [(0, 0)])], print, print)
    ffi = FFI()
    ffi.cdef("int triad(const float*, const float*, int64_t, float*);")
    by_cffi, buffer = ffi.dlopen(path).triad, ffi.from_buffer
    return by_turns(
        {
            "invoker, given output": repeated(lambda: given(b, c, 16, a), count),
            "invoker, new output": repeated(lambda: into(b, c), count),
            "task's function": repeated(lambda: function(b, c), count),
            "ctypes": repeated(
                lambda: triad(b.ctypes.data, c.ctypes.data, 16, a.ctypes.data), count
            ),
            "cffi": repeated(
                lambda: by_cffi(
                    buffer("float[]", b), buffer("float[]", c), 16, buffer("float[]", a)
                ),
                count,
            ),
            "np.add": repeated(lambda: np.add(b, c, out=a), count),
        },
        rounds,
        1e6 / count,
    )


def two_at_once(rounds: int, spins: int) -> dict[str, Any]:
    """How many times as fast two tasks are on two threads as one after the other."""
    port = fo.flow_input("rounds", fo.int64)
    flow = fo.flow_output(SPIN(port), SPIN(port))
    with fo.slice(flow, cores=1) as one, fo.slice(flow, cores=2) as two:
        found = by_turns(
            {"one": lambda: one.run(spins), "two": lambda: two.run(spins)}, rounds, 1.0
        )
    return {**found, "speedup": found["one"]["median"] / found["two"]["median"]}


def triads(rounds: int, floats: int) -> dict[str, Any]:
    """Seconds of a[i] = b[i] + 3 c[i]: two tasks with half of it each, and OpenMP."""
    b, c, half = np.ones(floats, np.float32), np.ones(floats, np.float32), floats // 2
    ports = [fo.flow_input(name, VECTOR) for name in ("b", "c", "d", "e")]
    values = (b[:half], c[:half], b[half:], c[half:])
    openmp = OPENMP.body.fun
    flow = fo.flow_output(TRIAD(ports[0], ports[1]), TRIAD(ports[2], ports[3]))
    with fo.slice(flow, cores=2) as tasks:
        found = by_turns(
            {"two tasks": lambda: tasks.run(*values), "openmp": lambda: openmp(b, c)}, rounds, 1.0
        )
        parts: Any = tasks.run(*values)
        total = sum(float(part.sum(dtype=np.float64)) for part in parts)
    ratio = found["openmp"]["median"] / found["two tasks"]["median"]
    return {**found, "of_openmp": ratio, "right": total == 4.0 * floats}


def first_use(rounds: int) -> dict[str, Any]:
    """Seconds from the first call in a process to its result."""
    program = (
        "import pickle, sys, time, numpy; f = pickle.load(sys.stdin.buffer); "
        "t = time.perf_counter(); f(3); print(time.perf_counter() - t)"
    )
    call = pickle.dumps(SPIN.body.fun)
    took: dict[str, list[float]] = {"compiled": [], "cached": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in took:
                done = subprocess.run(
                    [sys.executable, "-c", program],
                    input=call,
                    env={**os.environ, "XDG_CACHE_HOME": folder},
                    capture_output=True,
                    check=True,
                )
                took[name].append(float(done.stdout))
    return {
        name: {"median": statistics.median(each), "largest": max(each)}
        for name, each in took.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--floats", type=int, default=1 << 26)
    parser.add_argument("--spins", type=int, default=10_000_000)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("XDG_CACHE_HOME", str(Path(folder)))
        found = {
            "check_us": checks(given.rounds),
            "call_us": calls(given.rounds),
            "two": two_at_once(given.rounds, given.spins),
            "triad": triads(given.rounds, given.floats),
            "first_s": first_use(max(3, given.rounds // 4)),
        }
    print(json.dumps(found, indent=1))
    return 0 if found["triad"]["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
