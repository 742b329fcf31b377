"""The hash of x by which answers are compared, and the right-hand sides that the MPI program
generates itself: as in src/flowos/solver/native/mpi/answer.h."""

import numpy as np
from numpy.typing import NDArray


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def drawn_side(rows: int, seed: int) -> NDArray[np.float64]:
    """The right-hand side for other matrices than Poisson's: uniform in [-1, 1)."""
    bits = mixed(mixed(np.array([seed], np.uint64)) ^ np.arange(rows, dtype=np.uint64))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def hash_of(x: NDArray[np.float64]) -> str:
    """A hash that changes with any bit of x."""
    rows = mixed(np.arange(len(x), dtype=np.uint64))
    return f"{int(mixed(rows ^ x.view(np.uint64)).sum(dtype=np.uint64)):016x}"
