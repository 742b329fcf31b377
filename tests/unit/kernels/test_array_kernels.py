"""Kernels on arrays: right results in and out of flows, one line for what they do not take."""

import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.kernels import array_kernels
from flowos.model import Port

TYPES = array_kernels.TYPES
RNG = np.random.default_rng(58)


def numbers(count: int, kind: str) -> Any:
    return (RNG.standard_normal(count) * 1e4).astype(kind)


def message(kernel: Any, *given: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        kernel(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_results_are_those_of_plain_python(kind: str, count: int) -> None:
    x, y = numbers(count, kind), numbers(count // 3, kind)
    before = x.copy()
    assert fo.kernels.sort(x).tolist() == sorted(x.tolist())
    merged = fo.kernels.merge(fo.kernels.sort(x), fo.kernels.sort(y))
    assert merged.tolist() == sorted([*x.tolist(), *y.tolist()])
    assert merged.dtype == kind
    whole = np.rint(x % 9).astype(kind)
    sums = [sum(whole[: i + 1].tolist()) for i in range(count)]
    assert fo.kernels.prefix_sum(whole).tolist() == sums
    assert (x == before).all()


@pytest.mark.parametrize("threads", ["1", "2", "3", "8,2"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_large_array_is_sorted_by_threads_as_by_one(
    kind: str, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setattr(array_kernels, "SHARED", 1000)
    x = numbers(20_001, kind)
    x[::7] = x[3]
    if kind.startswith("float"):
        x[::5] = np.nan
    before = x.copy()
    assert fo.kernels.sort(x).tobytes() == np.sort(x).tobytes()
    assert x.tobytes() == before.tobytes()
    assert fo.kernels.sort(np.full(5000, 1, kind)).tolist() == [1] * 5000


def test_threads_share_a_large_sort_and_what_limits_blas_limits_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = list[threading.Thread]()

    class Counted(threading.Thread):
        def start(self) -> None:
            started.append(self)
            super().start()

    monkeypatch.setattr(array_kernels, "Thread", Counted)
    for limit, copies, sorts in (("1", 0, 0), ("2", 1, 1), ("4", 1, 3), ("6,2", 1, 5)):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        started.clear()
        fo.kernels.sort(numbers(8 * array_kernels.SHARED, "float64"))
        assert len(started) == copies + sorts, "besides the thread that asks"
    started.clear()
    fo.kernels.sort(numbers(array_kernels.SHARED - 1, "float64"))
    assert not started


def test_an_int32_is_summed_in_int64() -> None:
    assert fo.kernels.prefix_sum(np.full(3, 2**31 - 1, "i4")).tolist()[-1] == 3 * (2**31 - 1)


def test_nan_is_last_and_what_is_not_sorted_is_merged_all_the_same() -> None:
    x = np.array([3.0, np.nan, 1.0])
    assert str(fo.kernels.sort(x)) == "[ 1.  3. nan]"
    assert str(fo.kernels.merge(x, np.array([2.0]))) == "[ 1.  2.  3. nan]"


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize(
    ("bins", "limits"),
    [
        (256, (0, 256)),
        (255, (0, 255)),
        (20, (-10, 10)),
        (5, (-10, 10)),
        (3, (0, 7)),
        (4, (3, 3)),
        (2, (-1e300, 1e300)),
        (7, None),
        (10, (-1000, 1000)),
        (2, (0, 2**40)),
        (2, (-(2**40), 2**40)),
    ],
)
def test_integers_are_counted_as_numpy_counts_them(kind: str, bins: int, limits: Any) -> None:
    x = RNG.integers(-20, 300, 2 * array_kernels.BLOCK + 17).astype(kind)
    counts, edges = fo.kernels.histogram(x, bins, limits)
    true, at = np.histogram(x, bins, limits)
    assert counts.tolist() == true.tolist()
    assert edges.tolist() == at.tolist()


def test_a_histogram_of_floats_leaves_out_nan_and_what_is_outside() -> None:
    x = np.array([-1.0, 0.0, 0.5, 1.0, np.nan, 2.0])
    counts, edges = fo.kernels.histogram(x, bins=2, range=(0.0, 1.0))
    assert (counts.tolist(), edges.tolist()) == ([1, 2], [0.0, 0.5, 1.0])
    assert fo.kernels.histogram(np.zeros(0))[0].sum() == 0
    extreme = np.array([-(2**63), 2**63 - 1])
    assert fo.kernels.histogram(extreme, bins=2)[0].tolist() == [1, 1]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bins", [1, 2, 256])
def test_an_integer_that_no_float_is_keeps_its_place_in_a_histogram(bins: int, sign: int) -> None:
    x = np.array([0, sign * (2**53 + 1)])
    counts, edges = fo.kernels.histogram(x, bins)
    true, at = np.histogram(x, bins)
    assert counts.sum() == 2
    assert (counts.tolist(), edges.tolist()) == (true.tolist(), at.tolist())


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_edges_of_floats_are_those_of_numpy(kind: str) -> None:
    for x in (numbers(1001, kind), np.full(3, 7.25, kind), np.zeros(0, kind)):
        counts, edges = fo.kernels.histogram(x)
        true, at = np.histogram(x, 256)
        assert edges.dtype == at.dtype
        assert (counts.tolist(), edges.tolist()) == (true.tolist(), at.tolist())


def test_a_product() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.ones((3, 1))
    assert fo.kernels.gemm(a, b).tolist() == [[3.0], [12.0]]


def test_what_is_not_taken_is_said_in_one_line() -> None:
    k, x, square = fo.kernels, np.arange(4.0), np.eye(2)
    assert "expected 1-D arrays, given shape (2, 2)" in message(k.sort, square)
    assert "expected 2-D arrays, given shape (4,)" in message(k.gemm, x, square)
    assert "float64, given object" in message(k.sort, np.array([None]))
    assert "in foreign byte order" in message(k.sort, x.astype(">f8"))
    assert "given [1] (list)" in message(k.sort, [1])
    assert "given MaskedArray" in message(k.sort, np.ma.array([1.0]))
    assert "of one type, given float64 and int64" in message(k.merge, x, np.arange(2))
    assert "(2, 2) and (3, 3) do not fit" in message(k.gemm, square, np.eye(3))
    assert "given int64" in message(k.gemm, square.astype(int), square)
    assert "nan to nan: give range=" in message(k.histogram, np.array([np.nan]))
    for bins in (0, 10**12, 2**63 - 1):
        assert f"bins is 1 to 1000000000, given {bins}" in message(k.histogram, x, bins)
    assert "range is (low, high), given 5" in message(k.histogram, x, 3, 5)
    assert "range is (low, high), given (0, 1" in message(k.histogram, x, 3, (0, 2**1024))
    assert "the range is 2 to 1" in message(k.histogram, x, 3, (2, 1))


def test_in_a_flow_they_are_tasks() -> None:
    x = fo.flow_input("x", fo.array(fo.float64, (None,)))
    sums = fo.kernels.prefix_sum(fo.kernels.sort(x))
    assert isinstance(sums, Port)
    counts, edges = fo.kernels.histogram(sums, bins=2, range=(0.0, 6.0))
    with fo.slice(fo.flow_output(sums, counts, edges)) as s:
        found: list[Any] = s.run(np.array([3.0, 1.0, 2.0]))
    assert [each.tolist() for each in found] == [[1.0, 3.0, 6.0], [1, 2], [0.0, 3.0, 6.0]]
    anything = fo.flow_input("a", fo.array())
    product = fo.slice(fo.flow_output(fo.kernels.gemm(anything, anything)))
    with product as s, pytest.raises(fo.TaskFailed, match="float32, float64, given int64"):
        s.run(np.eye(2, dtype=int))


def test_they_name_the_library_that_computes() -> None:
    k, x = fo.kernels, np.arange(3)
    assert k.sort.library(x).startswith(f"NumPy {np.__version__}, np.sort")
    assert k.histogram.library(x, 4, (0, 4)).endswith("np.bincount")
    assert k.histogram.library(x, 4, (0, 3)).endswith("np.histogram")
    assert k.histogram.library([1]).endswith("np.histogram")
    assert k.gemm.library(np.eye(2), np.eye(2)).startswith("NumPy")


class OnGpu:
    """What an array on a GPU shows; the data lies in the host's memory here."""

    def __init__(self, data: Any) -> None:
        self.data, self.dtype, self.ndim, self.shape = data, data.dtype, data.ndim, data.shape
        self.__cuda_array_interface__: dict[str, object] = {}


def test_an_array_on_a_gpu_needs_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    there = OnGpu(np.arange(3.0))
    assert "(OnGpu) is on a GPU, for which there is no CuPy" in message(fo.kernels.sort, there)
    assert "one array is on a GPU and one is not" in message(fo.kernels.merge, there, np.ones(3))


def test_an_array_on_a_gpu_is_given_to_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a library that answers to CuPy's names: which are called is all that is tested here."""
    names = ("sort", "cumsum", "concatenate", "histogram", "matmul")
    cupy = SimpleNamespace(__version__="14", asarray=lambda x: x.data)
    for name in names:
        setattr(cupy, name, getattr(np, name))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    k, x = fo.kernels, OnGpu(np.array([2, 1]))
    assert k.sort(x).tolist() == [1, 2]
    assert k.merge(x, x).tolist() == [1, 1, 2, 2]
    assert k.histogram(x, 2)[0].tolist() == [1, 1]
    assert k.sort.library(x) == "CuPy 14, cupy.sort"
    assert k.gemm.library(x, x) == "CuPy 14, cupy.matmul"


def test_they_cross_to_other_processes_and_load_late() -> None:
    assert pickle.loads(pickle.dumps(fo.kernels.sort)).name == "sort"
    program = "import sys, flowos as fo; print('numpy' in sys.modules); fo.kernels.sort"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_large_array_is_sorted_where_the_system_has_no_more_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(threading.Thread, "start", refused)
    x = RNG.random(1 << 20)
    assert (array_kernels.sort(x) == np.sort(x)).all()
