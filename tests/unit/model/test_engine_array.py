"""Arrays that stay where an engine made them."""

import numpy as np

from flowos.model import EngineArray, brief_repr, on_host


def test_it_is_copied_once_and_says_what_it_is() -> None:
    reads: list[object] = []

    def read(array: EngineArray) -> object:
        reads.append(array.memory)
        return np.ones(array.shape, array.dtype)

    array = EngineArray("here", (2, 3), np.dtype("f4"), read, "opencl")
    assert array.nbytes == 24
    assert on_host(array) is on_host(array)
    assert reads == ["here"]
    assert on_host(3) == 3
    assert brief_repr(array) == "an array of float32, shape (2, 3) (EngineArray)"
