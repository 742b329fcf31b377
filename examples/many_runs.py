"""One flow over many values: `map` keeps several runs in flight and answers in order."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

import flowos as fo

Vector = Annotated[NDArray[np.float64], fo.array(fo.float64, (None,))]


@fo.task
def make(length: fo.int64) -> Vector:
    return np.arange(length, dtype=np.float64)


@fo.task
def total(values: Vector) -> fo.float64:
    return float(values.sum())


def lengths() -> Iterator[int]:
    """Taken as the runs go: it might as well never end."""
    yield from range(1, 8)


n = fo.flow_input("n", fo.int64)
with fo.slice(total(make(n))) as s:
    for result in s.map(lengths()):
        print(result)  # [0.0], [1.0], [3.0], ... [21.0]
