"""What the kernels do with arrays: NumPy's functions, or CuPy's where the data is on a GPU.

NumPy only, and nothing else of FlowOS: it goes to workers that have no FlowOS, and the program
of the probe measures it. docs/adr/0057 says which candidates were timed.
"""

import os
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np

TYPES = ("int32", "int64", "float32", "float64")
FLOATS = TYPES[2:]
EXACT = 2.0**53
"""Up to here each whole number is a float64, and the next one becomes this one."""
SHARED = 1 << 19
"""From so many elements on several threads sort: to start one takes as long as a few."""
BLOCK = 1 << 16
"""Elements that are counted at once: they stay in a cache while they are looked at and shifted."""
MAX_BINS = 10**9
"""Of a histogram: 16 GB of counts and edges."""


def sort(x: Any) -> Any:
    """The elements in ascending order, NaN last."""
    library, x = _library("sort", x), _vector("sort", x)
    threads = _threads() if library is np and x.size >= SHARED else 1
    return library.sort(x) if threads == 1 else _sorted_by(threads, x)


def _threads() -> int:
    """As many as libraries of BLAS take: what OMP_NUM_THREADS says, else one for each core."""
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(said) if said.isdecimal() and int(said) else len(os.sched_getaffinity(0))


def _sorted_by(threads: int, x: Any) -> Any:
    """A sorted copy. Two threads write its pages first, which by one would take a third of all."""
    y, half = np.empty_like(x), x.size // 2
    _at_once(lambda: np.copyto(y[:half], x[:half]), lambda: np.copyto(y[half:], x[half:]))
    _sort_in_place(threads, y)
    return y


def _sort_in_place(threads: int, y: Any) -> None:
    """The smaller elements are moved before the others; then both parts are sorted at once."""
    if threads == 1 or y.size < SHARED:
        y.sort()
        return
    fewer = threads // 2
    at = y.size * fewer // threads
    y.partition(at)
    _at_once(lambda: _sort_in_place(fewer, y[:at]), lambda: _sort_in_place(threads - fewer, y[at:]))


def _at_once(first: Callable[[], None], second: Callable[[], None]) -> None:
    """Both, which need no memory and so do not fail."""
    thread = Thread(target=first, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no more
        first()
        second()
    else:
        second()
        thread.join()


def prefix_sum(x: Any) -> Any:
    """y[i] = x[0] + ... + x[i]; int32 is summed in int64, floats in their own type, in order."""
    return _library("prefix_sum", x).cumsum(_vector("prefix_sum", x))


def merge(a: Any, b: Any) -> Any:
    """The elements of two sorted arrays of one type in ascending order, NaN last."""
    library = _library("merge", a, b)
    both = library.concatenate(_alike("merge", _vector("merge", a), _vector("merge", b)))
    if library is np:
        both.sort(kind="stable")  # timsort: it finds the two runs, and merges them
    else:
        both.sort()
    return both


def histogram(x: Any, bins: int = 256, range: Any = None) -> tuple[Any, Any]:
    """How many elements are in each of so many equal bins, and the edges of the bins."""
    values, library = _vector("histogram", x), _library("histogram", x)
    low, high = _limits(values, bins, range)
    if whole := whole_bins(values, bins, (low, high)):
        return _counts(values, bins, *whole), np.linspace(low, high, bins + 1)
    if range is None and values.dtype.name in FLOATS:  # as NumPy's own limits are: of its type
        low, high = values.dtype.type(low), values.dtype.type(high)
    counts, edges = library.histogram(values, bins, (low, high))
    return counts, edges


def whole_bins(x: Any, bins: int, range: Any) -> tuple[int, int] | None:
    """Lowest limit and width, where integers are counted in bins of whole numbers; else None."""
    if not _is_integers(x):
        return None
    low, high = _limits(x, bins, range)
    width = (high - low) / bins
    exact = max(-low, high) < EXACT and low.is_integer() and width.is_integer()
    return (int(low), int(width)) if exact else None


def _is_integers(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "i"


def gemm(a: Any, b: Any) -> Any:
    """The product of two matrices of float32 or of float64, by BLAS."""
    library = _library("gemm", a, b)
    a, b = _alike("gemm", *(_checked("gemm", each, 2, FLOATS) for each in (a, b)))
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"gemm: the shapes {a.shape} and {b.shape} do not fit")
    return library.matmul(a, b)


def _limits(values: Any, bins: int, given: Any) -> tuple[float, float]:
    """Of the bins: as given, or of the elements; equal ones are half a unit apart on each side."""
    if not 1 <= bins <= MAX_BINS:
        raise ValueError(f"histogram: bins is 1 to {MAX_BINS}, given {bins}")
    if given is None:
        low, high = (values.min(), values.max()) if values.size else (0, 1)
    else:
        low, high = _pair(given)
    low, high = float(low), float(high)
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        hint = "" if given is not None else ": give range=(low, high), and NaN is left out"
        raise ValueError(f"histogram: the range is {low:g} to {high:g}{hint}")
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _pair(given: Any) -> tuple[float, float]:
    try:
        low, high = map(float, given)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"histogram: range is (low, high), given {given!r:.60}") from None
    return low, high


def _counts(values: Any, bins: int, low: int, width: int) -> Any:
    """Of integers in bins of whole numbers, exactly; the highest limit belongs to the last bin."""
    high, counts = low + bins * width, np.zeros(bins + 1, np.intp)
    step = max(BLOCK, 4 * bins)
    for start in range_of(0, len(values), step):
        block = values[start : start + step]
        if block.min() < low or block.max() > high:
            block = block[(block >= low) & (block <= high)]
        shifted = block.astype(np.int64) - low if low or width >= 2**31 else block
        counts += np.bincount(shifted // width if width > 1 else shifted, minlength=bins + 1)
    counts[bins - 1] += counts[bins]
    return counts[:bins]


range_of = range
"""Python's own, where `range` is NumPy's word for limits."""


def _library(kernel: str, *given: Any) -> Any:
    """NumPy, or CuPy if all arrays are on a GPU."""
    there = [hasattr(each, "__cuda_array_interface__") for each in given]
    if not any(there):
        return np
    if not all(there):
        raise TypeError(f"{kernel}: one array is on a GPU and one is not")
    try:
        import cupy
    except ImportError:
        kind = type(given[0]).__name__
        raise TypeError(
            f"{kernel}: its array ({kind}) is on a GPU, for which there is no CuPy here: "
            "pip install cupy-cuda13x"
        ) from None
    return cupy


def _alike(kernel: str, a: Any, b: Any) -> tuple[Any, Any]:
    if a.dtype != b.dtype:
        raise TypeError(f"{kernel}: expected arrays of one type, given {a.dtype} and {b.dtype}")
    return a, b


def _vector(kernel: str, given: Any) -> Any:
    return _checked(kernel, given, 1, TYPES)


def _checked(kernel: str, given: Any, dimensions: int, types: tuple[str, ...]) -> Any:
    """The array as its library has it. Raises TypeError or ValueError if it is not as requested."""
    if hasattr(given, "__cuda_array_interface__"):
        given = sys.modules["cupy"].asarray(given)
    elif type(given) not in (np.ndarray, np.memmap):
        raise TypeError(f"{kernel}: expected an array of NumPy, given {type(given).__name__}")
    if given.dtype.name not in types or not given.dtype.isnative:
        order = "" if given.dtype.isnative else " in foreign byte order"
        raise TypeError(f"{kernel}: expected {', '.join(types)}, given {given.dtype.name}{order}")
    if given.ndim != dimensions:
        raise ValueError(f"{kernel}: expected {dimensions}-D arrays, given shape {given.shape}")
    return given
