"""Measures the kernels of `fo.kernels`: sort, prefix sum, merge, histogram, matrix product.

usage: python kernels.py --device D --seconds S --sizes N,... --orders N,... --types T,...

D is cpu, cuda:0, cuda:1 and so on (by CuPy); S is about how long all calls may take. sizes:
elements of a vector. orders: rows of the square matrices. Types: i32, i64, f32, f64.
Every result is checked before it is timed. Prints the JSON that probes read; exit 77 with
{"cannot", "remedy"} where it cannot be measured, 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

CANNOT_MEASURE_HERE = 77
MIN_SAMPLES, MAX_SAMPLES = 3, 50
BINS = 256
VALUES = 9
"""Elements are whole numbers from -(VALUES // 2) on, so that sums of floats are exact."""
DTYPES = {"i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}
TOLERANCE = {"f32": 1e-5, "f64": 1e-12}

TimedCall = Callable[[], Any]


def cannot(reason: str, remedy: str = "") -> NoReturn:
    sys.stdout.write(json.dumps({"cannot": reason, "remedy": remedy}))
    sys.stdout.flush()
    sys.exit(CANNOT_MEASURE_HERE)


def wrong(what: str) -> NoReturn:
    sys.exit(f"kernels: {what}")


sys.path.append(str(Path(__file__).parents[1].with_name("kernels")))  # else it is our sibling
try:
    import numpy as np

    kernels = importlib.import_module("array_kernels")
except ImportError as failed:
    cannot(f"NumPy cannot be imported: {failed}", "pip install numpy")


class Library:
    """NumPy, or CuPy on one GPU."""

    def __init__(self, device: str) -> None:
        self.of: Any = np
        self.wait: TimedCall = lambda: None
        if device == "cpu":
            self.says = f"NumPy {np.__version__}"
            return
        try:
            self.of = importlib.import_module("cupy")
            self.of.cuda.Device(int(device.partition(":")[2])).use()
            self.of.zeros(1)
        except Exception as error:  # CuPy's errors are known by CuPy only
            cannot(f"CuPy: {str(error).splitlines()[0]}", "pip install cupy-cuda13x")
        self.wait = self.of.cuda.runtime.deviceSynchronize
        self.says = f"CuPy {self.of.__version__}"

    def numbers(self, count: int, kind: str) -> Any:
        """Whole numbers at random, the same each time."""
        found = np.random.default_rng(count).integers(0, VALUES, count) - VALUES // 2
        return self.of.asarray(found.astype(DTYPES[kind]))

    def spread(self, count: int, kind: str) -> Any:
        """Numbers at random of which nearly all differ."""
        rng = np.random.default_rng(count)
        if kind.startswith("i"):
            most = np.iinfo(DTYPES[kind]).max
            return self.of.asarray(rng.integers(-most, most, count, DTYPES[kind]))
        return self.of.asarray(rng.standard_normal(count).astype(DTYPES[kind]))

    def once(self, call: TimedCall) -> float:
        """The seconds of one call."""
        self.wait()
        began = time.perf_counter()
        call()
        self.wait()
        return time.perf_counter() - began

    def times(self, call: TimedCall, seconds: float) -> list[float]:
        """The seconds of one call, several times over, for about so long. It was called before."""
        count = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / max(self.once(call), 1e-6))))
        return [self.once(call) for _ in range(count)]


# --- each kernel: the call, whether its result is right, and the bytes that it moves at least -----


def same_elements(found: Any, given: Any) -> bool:
    """By the sum and the exclusive or of their bits."""
    bits = f"uint{8 * given.itemsize}"
    a, b = (
        np.asarray(x if isinstance(x, np.ndarray) else x.get()).view(bits) for x in (found, given)
    )
    return bool(
        a.size == b.size
        and a.sum(dtype=np.uint64) == b.sum(dtype=np.uint64)
        and np.bitwise_xor.reduce(a) == np.bitwise_xor.reduce(b)
    )


def is_sorted(x: Any) -> bool:
    return bool((x[:-1] <= x[1:]).all())


def sort(library: Library, n: int, kind: str) -> tuple[TimedCall, int]:
    x = library.spread(n, kind)
    found = kernels.sort(x)
    if not is_sorted(found) or not same_elements(found, x):
        wrong(f"sort of {n} elements of {kind}")
    return lambda: kernels.sort(x), 0


def merge(library: Library, n: int, kind: str) -> tuple[TimedCall, int]:
    x = library.spread(n, kind)
    a, b = (kernels.sort(half) for half in (x[: n // 2], x[n // 2 :]))
    found = kernels.merge(a, b)
    if not is_sorted(found) or not same_elements(found, x):
        wrong(f"merge of {n} elements of {kind}")
    return lambda: kernels.merge(a, b), 2 * x.nbytes


def prefix_sum(library: Library, n: int, kind: str) -> tuple[TimedCall, int]:
    x = library.numbers(n, kind)
    found = kernels.prefix_sum(x)
    if found[0] != x[0] or not bool((found[1:] - found[:-1] == x[1:]).all()):
        wrong(f"prefix_sum of {n} elements of {kind}")
    return lambda: kernels.prefix_sum(x), x.nbytes + found.nbytes


def histogram(library: Library, n: int, kind: str) -> tuple[TimedCall, int]:
    """Of values 0 .. BINS - 1, in a bin each; those of floats lie anywhere within their bins."""
    rng = np.random.default_rng(n)
    values = rng.integers(0, BINS, n) if kind.startswith("i") else rng.random(n) * BINS
    host = np.minimum(values.astype(DTYPES[kind]), np.nextafter(BINS, 0, dtype="f4"))
    x = library.of.asarray(host.astype(DTYPES[kind]))
    counts, _ = kernels.histogram(x, BINS, (0, BINS))
    true = np.bincount(host.astype(np.int64), minlength=BINS)
    if not bool((library.of.asarray(true) == counts).all()):
        wrong(f"histogram of {n} elements of {kind}")
    return lambda: kernels.histogram(x, BINS, (0, BINS)), x.nbytes


def gemm(library: Library, n: int, kind: str) -> tuple[TimedCall, int]:
    a, b = (library.spread(n * n + i, kind)[: n * n].reshape(n, n) for i in range(2))
    rows = slice(0, n, max(1, n // 24))
    found, true = kernels.gemm(a, b)[rows], a[rows].astype("f8") @ b.astype("f8")
    error = float(((found - true) ** 2).sum() ** 0.5 / (true**2).sum() ** 0.5)
    if not error < TOLERANCE[kind]:
        wrong(f"gemm of {kind}, n = {n}, is off by {error:.2g}, more than {TOLERANCE[kind]:g}")
    return lambda: kernels.gemm(a, b), 0


KERNELS = {"sort": sort, "prefix_sum": prefix_sum, "merge": merge, "histogram": histogram}


def measured(library: Library, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """For each kernel and type the sizes that fit into the time and the memory."""
    kinds, floats = options.types, [kind for kind in options.types if kind in TOLERANCE]
    sweeps = [(n, m, k, options.sizes) for n, m in KERNELS.items() for k in kinds]
    sweeps += [("gemm", gemm, kind, options.orders) for kind in floats]
    for name, make, kind, sizes in sweeps:
        most, power = options.seconds / len(sweeps), 3 if name == "gemm" else 1
        slowest = 0.0
        for n in sizes:
            if slowest * n**power > most:
                break
            began = time.perf_counter()
            try:
                call, moved = make(library, n, kind)
                slowest = (time.perf_counter() - began) / n**power
                times = library.times(call, most / len(sizes))
            except MemoryError:  # CuPy's, too
                break
            levels = {"kernel": name, "type": kind, "n": str(n)}
            yield from answers(library, levels, times, 2 * n**3 if power == 3 else n, moved)


def answers(
    library: Library, levels: dict[str, str], times: list[float], work: int, moved: int
) -> Iterator[dict[str, Any]]:
    """work: operations of a product, else elements. moved: bytes; 0 where memory is no limit."""
    product = levels["kernel"] == "gemm"
    metrics = [("flops", "flop/s", work) if product else ("elements", "1/s", work)]
    metrics += [("bandwidth", "byte/s", moved)] if moved else []
    for metric, unit, amount in metrics:
        values = [amount / seconds for seconds in times]
        notes = {"library": library.says}
        reading = {"metric": metric, "unit": unit, "values": values}
        yield dict(reading, levels=levels, notes=notes)


def parsed(words: list[str]) -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    def kinds(text: str) -> list[str]:
        return [word for word in text.split(",") if DTYPES[word]]

    parser = argparse.ArgumentParser(description="Measure kernels on arrays.")
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--sizes", type=numbers, required=True)
    parser.add_argument("--orders", type=numbers, required=True)
    parser.add_argument("--types", type=kinds, required=True)
    return parser.parse_args(words)


def main() -> None:
    options = parsed(sys.argv[1:])
    readings = list(measured(Library(options.device), options))
    if not readings:
        cannot("nothing of it could be measured within its time")
    sys.stdout.write(json.dumps({"readings": readings}))


if __name__ == "__main__":
    main()
