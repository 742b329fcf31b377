"""A batch as the array of a framework, which sees the same memory: nothing is copied."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowos.feeder._one_line import one_line
from flowos.feeder._ranks import Ranks
from flowos.feeder._source_options import Record
from flowos.model import FeedError, SampleError, brief_repr

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
        return _clearly(kind, _to_torch(module))
    return _clearly(kind, lambda array: module.from_dlpack(_owned(array)))


def _clearly(kind: str, convert: Convert) -> Convert:
    def converted(array: NDArray[Any]) -> Any:
        try:
            return convert(array)
        except (BufferError, TypeError, ValueError) as why:
            raise FeedError(
                f"Feed: framework={kind!r}: {kind} has no arrays of {_named(array.dtype)}; write "
                "the data in a type that it has, or give framework='numpy'"
            ) from why

    return converted


def _named(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"


def check_type(convert: Convert | None, record: Record | None) -> None:
    """Raises FeedError if the framework has no arrays of what each sample is."""
    if convert is not None and record is not None:
        convert(np.empty(0, record.dtype))


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


def distributed_ranks() -> Ranks | None:
    """Rank and world size of torch.distributed, where this process has joined it."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return Ranks(int(module.get_rank()), int(module.get_world_size()))


def as_array(value: object) -> object:
    """Arrays, tensors, images and numbers as NumPy arrays; all else as it is."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) and b"\1" in np.ma.getmask(value).tobytes():
            raise SampleError(
                "decode= returned an array with masked values, and a batch has no mask: fill them, "
                "as with x.filled(0)"
            )
        return value
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as why:
            kind, dtype = type(value).__name__, getattr(value, "dtype", "unknown type")
            raise SampleError(
                f"decode= returned a {kind} of {dtype}, of which NumPy makes no array "
                f"({one_line(why)}); return one of a type that NumPy has, in the processor's "
                "memory, without a gradient"
            ) from why
    if hasattr(value, "__array_interface__") or isinstance(value, (int, float)):
        return np.asarray(value)
    return value


def giving_arrays(
    decode: Callable[[memoryview, int, int], object],
) -> Callable[[memoryview, int, int], object]:
    """The same function, of which what is no array fails in its own thread, for its sample."""
    return lambda data, epoch, sample: as_array(decode(data, epoch, sample))


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
