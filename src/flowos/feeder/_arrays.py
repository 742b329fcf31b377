"""A batch as the array of a framework, which sees the same memory: nothing is copied."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowos.model import FeedError, brief_repr

Convert: TypeAlias = Callable[[NDArray[Any]], Any]

KINDS = ("numpy", "torch", "jax")


def converter(kind: str) -> Convert | None:
    """From NumPy arrays to those of the framework; None for NumPy itself.

    Raises FeedError if the framework is unknown or not installed.
    """
    if kind == "numpy":
        return None
    if kind not in KINDS:
        raise FeedError(f"Feed: framework={brief_repr(kind)}; one of {', '.join(KINDS)}")
    try:
        module = import_module("torch" if kind == "torch" else "jax.dlpack")
    except ImportError as why:
        raise FeedError(f"Feed: framework={kind!r}: {kind} is not installed here: {why}") from why
    if kind == "torch":
        return _to_torch(module)
    return lambda array: module.from_dlpack(_owned(array))


def _to_torch(torch: Any) -> Convert:
    """Where torch has a GPU, a copy in page-locked memory, from which the GPU fetches by itself."""

    def shared(array: NDArray[Any]) -> Any:
        return torch.from_numpy(_owned(array))

    def pinned(array: NDArray[Any]) -> Any:
        like = torch.from_numpy(np.empty(0, array.dtype))
        tensor = torch.empty(array.shape, dtype=like.dtype, pin_memory=True)
        np.copyto(tensor.numpy(), array)
        return tensor

    return pinned if torch.cuda.is_available() else shared


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of what the cache may still be filled from: tensors can be written, this must not."""
    return array if array.flags.writeable else array.copy()


def distributed_ranks() -> tuple[int, int] | None:
    """Rank and world size of torch.distributed, where this process has joined it."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return int(module.get_rank()), int(module.get_world_size())


def as_array(value: object) -> object:
    """Arrays, tensors, images and numbers as NumPy arrays; all else as it is."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if hasattr(value, "__array_interface__") or isinstance(value, (int, float)):
        return np.asarray(value)
    return value


def stacked(values: list[object]) -> NDArray[Any] | list[object]:
    """One array (n, ...) where all are arrays of one shape and type; else the list of them."""
    arrays = [as_array(value) for value in values]
    first = arrays[0] if arrays else None
    if isinstance(first, np.ndarray) and all(
        isinstance(array, np.ndarray) and array.shape == first.shape and array.dtype == first.dtype
        for array in arrays
    ):
        return np.stack(arrays)  # type: ignore[arg-type]
    return arrays
