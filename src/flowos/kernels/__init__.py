"""Sort, prefix sum, merge, histogram, matrix product: tasks, by the fastest library that is there.

A kernel is wired into flows as any task; called without a port it computes at once. Arrays are of
NumPy, with elements of int32, int64, float32 or float64, or on a GPU (`__cuda_array_interface__`):
then CuPy computes, and the result stays there. Other arrays are refused with one line.
`fo.kernels.sort.library(x)` names the library that computes for these arguments.

>>> fo.kernels.sort(np.array([3, 1, 2]))
array([1, 2, 3])
>>> fo.kernels.prefix_sum(np.array([3, 1, 2]))
array([3, 4, 6])
>>> fo.kernels.merge(np.array([1, 3]), np.array([2, 4]))
array([1, 2, 3, 4])
>>> fo.kernels.gemm(np.eye(2), np.ones((2, 1)))
array([[1.],
       [1.]])
>>> counts, edges = fo.kernels.histogram(np.array([0.0, 0.2, 1.0]), bins=2)
>>> counts
array([2, 1])
"""

from flowos.kernels import array_kernels
from flowos.kernels._kernel import Kernel
from flowos.kernels._libraries import by_blas, by_histogram, by_numpy, by_simd_sort
from flowos.model import DeviceArray, PortSpec, Python, any_, int64

_ARRAY = DeviceArray("array(any, any)", None, None)
"""Inputs say no shape, so that ports of any array fit; the kernels look."""
_VECTOR = DeviceArray("array(any, (any,))", None, (None,))
_MATRIX = DeviceArray("array(any, (any, any))", None, (None, None))

sort = Kernel(
    name="sort",
    inputs=(PortSpec("x", _ARRAY),),
    outputs=(PortSpec("out", _VECTOR),),
    body=Python(array_kernels.sort),
    library=by_simd_sort,
)
"""sort(x): the elements in ascending order; NaN comes last, as in NumPy."""

prefix_sum = Kernel(
    name="prefix_sum",
    inputs=(PortSpec("x", _ARRAY),),
    outputs=(PortSpec("out", _VECTOR),),
    body=Python(array_kernels.prefix_sum),
    library=by_numpy("cumsum"),
)
"""prefix_sum(x): y[i] = x[0] + ... + x[i]. int32 is summed in int64; floats in their own type one
after the other, so errors of rounding add up; integers that overflow wrap around."""

merge = Kernel(
    name="merge",
    inputs=(PortSpec("a", _ARRAY), PortSpec("b", _ARRAY)),
    outputs=(PortSpec("out", _VECTOR),),
    body=Python(array_kernels.merge),
    library=by_numpy("sort"),
)
"""merge(a, b): all elements of two sorted arrays, sorted, NaN last. Arrays that are not sorted give
the same, more slowly. Both are of one type."""

histogram = Kernel(
    name="histogram",
    inputs=(
        PortSpec("x", _ARRAY),
        PortSpec("bins", int64),
        PortSpec("range", any_),
    ),
    outputs=(PortSpec("counts", _VECTOR), PortSpec("edges", _VECTOR)),
    body=Python(array_kernels.histogram),
    defaults=(("bins", 256), ("range", None)),
    library=by_histogram,
)
"""histogram(x, bins=256, range=None): how many elements are in each of so many equal bins, and
their bins + 1 edges, as np.histogram has it. range: (low, high), else those of x; elements outside
and NaN are left out, and `high` itself is in the last bin. bins: 10**9 at most."""

gemm = Kernel(
    name="gemm",
    inputs=(PortSpec("a", _ARRAY), PortSpec("b", _ARRAY)),
    outputs=(PortSpec("out", _MATRIX),),
    body=Python(array_kernels.gemm),
    library=by_blas,
)
"""gemm(a, b): the product of two matrices of float32 or float64."""

__all__ = ["Kernel", "gemm", "histogram", "merge", "prefix_sum", "sort"]
