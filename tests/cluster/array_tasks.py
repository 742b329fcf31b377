"""Tasks on arrays. A worker process loads this file: one of tests would load pytest."""

import sys

import numpy as np
import numpy.typing as npt

import flowos as fo

Array = npt.NDArray[np.float64]


@fo.task
def twice(a: Array) -> Array:
    return a * 2


@fo.task
def total_of(a: Array) -> fo.float64:
    return float(a.sum())


@fo.task
def spoil(a: Array, x: fo.int64) -> fo.float64:
    total = float(a.sum()) + x
    a[:] = -1
    return total


@fo.task
def filled(x: fo.int64) -> Array:
    return np.full(20_000, float(x))


@fo.task
def keeps(a: Array) -> fo.bool_:
    kept = sys.__dict__.setdefault("kept", [])
    kept.append((a, float(a[0])))
    return all(bool((array == value).all()) for array, value in kept)
