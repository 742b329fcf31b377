"""Ports of arrays that may lie on a GPU."""

from typing import ClassVar

import numpy as np

from flowos.model import DeviceArray, array, float64


def test_a_device_array_may_lie_on_a_gpu() -> None:
    class OnGpu:
        __cuda_array_interface__: ClassVar[dict[str, object]] = {}
        shape = (3,)

    vector = DeviceArray("vector", None, (None,))
    assert vector.check(OnGpu()) is None
    assert vector.check(np.zeros(3)) is None
    assert vector.check([1]) == "expected vector, given [1] (list)"
    matrix = DeviceArray("matrix", None, (None, None))
    assert str(matrix.check(OnGpu())).startswith("expected matrix, given ")
    assert array().accepts(vector)
    assert vector.accepts(array(float64, (3,)))
