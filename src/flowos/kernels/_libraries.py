"""Which library computes, in words."""

from collections.abc import Callable
from typing import Any

import numpy as np

from flowos.kernels.array_kernels import whole_bins

_SIMD_SORT = {"x86_64": "x86-simd-sort", "amd64": "x86-simd-sort", "aarch64": "Highway VQSort"}
_WIDE = ("AVX512_SKX", "X86_V4", "AVX2", "X86_V3", "SVE", "ASIMD", "NEON")
"""What those need one of, the widest first."""


def by_numpy(function: str) -> Callable[..., str]:
    """Words for a kernel that is one function of NumPy, or CuPy's of the same name."""

    def words(*arrays: Any) -> str:
        return _cupy(function, *arrays) or f"NumPy {np.__version__}, np.{function}"

    return words


def by_simd_sort(*arrays: Any) -> str:
    """NumPy 2 sorts 32 and 64 bits with vector instructions, where the processor has them."""
    config = _config()
    machine, found = config["Machine Information"]["host"], _found()
    wide = next((isa for isa in _WIDE if isa in found), "")
    name = _SIMD_SORT.get(machine["cpu"], "")
    by = f", {name} with {wide}" if name and wide else ""
    return _cupy("sort", *arrays) or f"NumPy {np.__version__}, np.sort{by}"


def by_histogram(x: Any, bins: int = 256, range: Any = None) -> str:
    """Two functions of NumPy, by what the bins are."""
    function = "histogram" if whole_bins(x, bins, range) is None else "bincount"
    return by_numpy(function)(x)


def by_blas(*arrays: Any) -> str:
    """The BLAS that NumPy was built with."""
    blas = _config()["Build Dependencies"]["blas"]
    by = " ".join(filter(None, (blas.get("name", ""), blas.get("version", ""))))
    return _cupy("matmul", *arrays) or f"NumPy {np.__version__}, {by or 'without a BLAS'}"


def _config() -> Any:
    return np.show_config(mode="dicts")


def _found() -> list[str]:
    simd = _config().get("SIMD Extensions", {})
    return [*simd.get("baseline", ()), *simd.get("found", ())]


def _cupy(function: str, *arrays: Any) -> str:
    """ "" if no array is on a GPU."""
    if not any(hasattr(each, "__cuda_array_interface__") for each in arrays):
        return ""
    import cupy

    return f"CuPy {cupy.__version__}, cupy.{function}"
