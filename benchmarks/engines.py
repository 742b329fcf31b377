"""What task bodies in other languages cost, next to what else calls such functions.

All ways by turns, medians and the middle half of the rounds. `check`: a task of arrays,
against one of integers. `call`: three arrays of 16 floats, into an output that is there and into a
new one. `two`: two tasks at once against one after the other. `triad`: two C++ tasks against
one with OpenMP, with new outputs; their functions against a program with OpenMP, with outputs that
are reused. `first`: compiled, and found in the cache by a new process. `opencl`: a call with three
arrays of 16 floats, and the time that its thread works for it; the triad; the first use. `either`:
two triads in a chain, each engine forced and chosen, by size. `empty`: 10,000 empty tasks side by
side and in a chain, next to StarPU's. `hdl`: an adder in Verilog, simulated: cycles a second,
microseconds a sample and a call, seconds to build it, with Verilator's library and without.
`targets`: what of that is to be reached, and whether it holds.
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
from _by_turns import Way, by_turns, repeated
from _either_turns import forced_and_chosen
from _empty_tasks import empty_tasks
from _engine_targets import judged
from _numbers import whole_number
from _triad_peers import into_given, openmp_program, reused_outputs

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
OPENCL_SOURCE = """
__kernel void triad(__global const float* b, __global const float* c, float s, long n,
                    __global float* a) {
  size_t i = get_global_id(0);
  a[i] = b[i] + s * c[i];
}
"""
OPENCL: Any = fo.opencl(
    OPENCL_SOURCE,
    "triad",
    inputs={"b": VECTOR, "c": VECTOR, "s": fo.float32},
    outputs={"a": VECTOR},
)


@fo.task
def same(v: FIXED) -> FIXED:  # type: ignore[valid-type]
    return v


@fo.task
def named(v: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return v


@fo.task
def number(v: fo.int64) -> fo.int64:
    return v


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

    count = 20_000
    b, c, a = np.ones(16, np.float32), np.ones(16, np.float32), np.empty(16, np.float32)
    function = TRIAD.body.fun
    function(b, c)
    given, triad, path = into_given(function, "triad")
    address = ctypes.cast(triad, ctypes.c_void_p).value or 0
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
    """Seconds of a[i] = b[i] + 3 c[i]: two tasks with half of it each, and OpenMP; by both into
    new outputs, and into those that are there."""
    b, c, half = np.ones(floats, np.float32), np.ones(floats, np.float32), floats // 2
    ports = [fo.flow_input(name, VECTOR) for name in ("b", "c", "d", "e")]
    values = (b[:half], c[:half], b[half:], c[half:])
    openmp = OPENMP.body.fun
    flow = fo.flow_output(TRIAD(ports[0], ports[1]), TRIAD(ports[2], ports[3]))
    given, a = into_given(TRIAD.body.fun, "triad")[0], np.zeros(floats, np.float32)
    calls = [(b[:half], c[:half], a[:half]), (b[half:], c[half:], a[half:])]
    with (
        fo.slice(flow, cores=2) as tasks,
        openmp_program(floats) as program,
        reused_outputs(given, calls) as reused,
    ):
        ways: dict[str, Way] = {
            "two tasks": lambda: tasks.run(*values),
            "openmp": lambda: openmp(b, c),
            "two calls, outputs reused": reused,
            "openmp program": program,
        }
        found = by_turns(ways, rounds, 1.0)
        parts: Any = (*tasks.run(*values), a)
        total = sum(float(part.sum(dtype=np.float64)) for part in parts)
        right = total == 8.0 * floats and program() == 4.0
    median = {name: each["median"] for name, each in found.items()}
    of_openmp = median["openmp"] / median["two tasks"]
    of_program = median["openmp program"] / median["two calls, outputs reused"]
    return {**found, "of_openmp": of_openmp, "of_program": of_program, "right": right}


def bare_pyopencl() -> Callable[[Any, Any], Any]:
    """The same call as a person would write it once its types are said."""
    import pyopencl as cl

    from flowos.engine.bodies._opencl_engine import opencl_engine

    context, flags = opencl_engine().context, cl.mem_flags
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, OPENCL_SOURCE).build(), "triad")
    kernel.set_arg_types([None, None, np.float32, np.int64, None])
    read, write = (f | flags.USE_HOST_PTR for f in (flags.READ_ONLY, flags.WRITE_ONLY))

    def call(b: Any, c: Any) -> Any:
        a = np.empty(len(b), np.float32)
        given, other, into = (
            cl.Buffer(context, flag, hostbuf=array)
            for flag, array in ((read, b), (read, c), (write, a))
        )
        kernel.set_args(given, other, 3.0, len(b), into)
        cl.enqueue_nd_range_kernel(queue, kernel, (len(b),), None).wait()
        return a

    return call


def opencl(rounds: int, floats: int) -> dict[str, Any]:
    ours, bare, openmp = OPENCL.body.fun, bare_pyopencl(), OPENMP.body.fun
    b, c = np.ones(16, np.float32), np.ones(16, np.float32)
    ways = {
        "task's function": repeated(lambda: ours(b, c, 3.0), 300),
        "pyopencl": repeated(lambda: bare(b, c), 300),
    }
    calls = by_turns(ways, rounds, 1e6 / 300)
    works = by_turns(ways, rounds, 1e6 / 300, time.thread_time)
    b, c = np.ones(floats, np.float32), np.ones(floats, np.float32)
    triad = by_turns(
        {
            "task's function": lambda: ours(b, c, 3.0),
            "pyopencl": lambda: bare(b, c),
            "openmp": lambda: openmp(b, c),
        },
        rounds,
        1.0,
    )
    rates = {name: 12e-9 * floats / each["median"] for name, each in triad.items()}
    a = np.ones(16, np.float32)
    first = first_use(max(3, rounds // 4), ours, (a, a, 3.0))
    return {"call_us": calls, "works_us": works, "triad_gb_s": rates, "first_s": first}


def choices(rounds: int) -> dict[str, Any]:
    """Seconds of two triads in a chain, by number of floats: each engine forced, and chosen."""
    numpy: Any = fo.task(
        {
            "task_name": "triad",
            "iport_nametypes": (("b", VECTOR), ("c", VECTOR)),
            "oport_nametypes": ("a", VECTOR),
            "fun": lambda b, c: b + np.float32(3) * c,
        }
    )
    source = OPENCL_SOURCE.replace("float s, ", "").replace("s * ", "3.0f * ")
    kernel = fo.opencl(source, "triad", inputs={"b": VECTOR, "c": VECTOR}, outputs={"a": VECTOR})
    triad = fo.either(numpy, TRIAD, kernel)
    b, c = fo.flow_input("b", VECTOR), fo.flow_input("c", VECTOR)
    flow = fo.flow_output(triad(triad(b, c), c))
    return {
        str(floats): forced_and_chosen(flow, floats, rounds)
        for floats in (1_000, 10_000, 100_000, 1_000_000, 16_000_000)
    }


def first_use(rounds: int, fun: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Seconds from the first call in a process to its result."""
    program = (
        "import pickle, sys, time, numpy; f, given = pickle.load(sys.stdin.buffer); "
        "t = time.perf_counter(); f(*given); print(time.perf_counter() - t)"
    )
    call = pickle.dumps((fun, arguments))
    took: dict[str, list[float]] = {"compiled": [], "cached": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name in took:
                done = subprocess.run(
                    [sys.executable, "-c", program],
                    input=call,
                    env={
                        **os.environ,
                        "XDG_CACHE_HOME": folder,
                        "POCL_CACHE_DIR": f"{folder}/pocl",
                    },
                    capture_output=True,
                    check=True,
                )
                took[name].append(float(done.stdout))
    return {
        name: {"median": statistics.median(each), "largest": max(each)}
        for name, each in took.items()
    }


ADDER = (Path(__file__).parents[1] / "examples/add.v").read_text(encoding="utf-8")


def adder(name: str = "add") -> Any:
    """What its task calls. name: of the module, as another one is built anew."""
    words = fo.array(fo.uint32, ("n",))
    task: Any = fo.hdl(
        ADDER.replace("module add", f"module {name}"),
        name,
        inputs={"a": words, "b": words},
        outputs={"sum": words},
        into={"s": ("a", "b")},
        out={"m": "sum"},
    )
    return task.body.fun


def simulated(rounds: int, samples: int) -> dict[str, Any]:
    """One sample is one cycle, and one more comes to the end."""
    a = np.random.default_rng(0).integers(0, 1 << 32, samples, np.uint32)
    b, one, add = a[::-1].copy(), np.ones(1, np.uint32), adder()
    found = by_turns(
        {"samples": lambda: add(a, b), "call": repeated(lambda: add(one, one), 1000)}, rounds, 1.0
    )
    took = found["samples"]["median"]
    return {
        "Mcycles_per_s": (samples + 1) / took / 1e6,
        "us_a_sample": took / samples * 1e6,
        "us_a_call": found["call"]["median"] * 1e3,
        "right": bool((add(a, b) == a + b).all()),
        "build_s": built(),
        **found,
    }


def built() -> dict[str, float]:
    """Seconds to the first result: with nothing kept, with Verilator's library, with the module."""
    one = np.ones(1, np.uint32)
    was = os.environ["XDG_CACHE_HOME"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            ways = {"cold": "first", "library kept": "second", "kept": "second"}
            took = {}
            for way, name in ways.items():
                began = time.perf_counter()
                adder(name)(one, one)
                took[way] = time.perf_counter() - began
            return took
        finally:
            os.environ["XDG_CACHE_HOME"] = was


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=whole_number(2, "for a median"), default=21)
    parser.add_argument("--floats", type=whole_number(), default=1 << 26)
    parser.add_argument("--spins", type=whole_number(), default=10_000_000)
    parser.add_argument("--samples", type=whole_number(), default=2_000_000)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else its threads spin in others' turns
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("XDG_CACHE_HOME", str(Path(folder)))
        found = {
            "check_us": checks(given.rounds),
            "call_us": calls(given.rounds),
            "two": two_at_once(given.rounds, given.spins),
            "triad": triads(given.rounds, given.floats),
            "first_s": first_use(max(3, given.rounds // 4), SPIN.body.fun, (3,)),
            "opencl": opencl(given.rounds, given.floats),
            "either": choices(given.rounds),
            "empty": empty_tasks(given.rounds),
            "hdl": simulated(given.rounds, given.samples),
        }
    print(json.dumps({**found, "targets": judged(found)}, indent=1))
    return 0 if found["triad"]["right"] and found["hdl"]["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
