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


def test_by_dlpack_it_is_an_array_on_the_host_copied_once() -> None:
    held = np.arange(6.0).reshape(2, 3)
    reads: list[object] = []

    def read(array: EngineArray) -> object:
        reads.append(array.memory)
        return held

    array = EngineArray("there", (2, 3), held.dtype, read, "cuda")
    assert array.__dlpack_device__() == held.__dlpack_device__()
    assert not reads, "to ask where it is copies nothing"
    views = [np.from_dlpack(array) for _ in range(2)]
    assert [view.ctypes.data for view in views] == [held.ctypes.data] * 2
    assert reads == ["there"]
