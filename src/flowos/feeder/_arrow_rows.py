"""The rows of an Arrow column as bytes, without a copy of any."""

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from flowos._dataclasses import dataclass
from flowos.model import FeedError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Of row i: data[bounds[i] : bounds[i + 1]]. valid: None where no row is null."""

    data: memoryview
    bounds: "NDArray[np.int64]"
    valid: "NDArray[np.bool_] | None"


class Rows:
    """A column: bytes and texts as they are, lists of numbers as their items' bytes.

    Raises FeedError for another type, or nulls inside lists.
    """

    def __init__(self, column: Any) -> None:
        self.size_bytes = int(column.nbytes)
        self._chunks = [_chunk(array) for array in column.chunks]
        ends = np.cumsum([len(chunk.bounds) - 1 for chunk in self._chunks], dtype=np.int64)
        self._ends: list[int] = ends.tolist()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: int) -> memoryview:
        """Raises FeedError if it is null."""
        at = bisect_right(self._ends, row)
        chunk = self._chunks[at]
        row -= self._ends[at - 1] if at else 0
        if chunk.valid is not None and not chunk.valid[row]:
            raise FeedError("it is null")
        return chunk.data[chunk.bounds[row] : chunk.bounds[row + 1]]


def is_sample_type(kind: Any) -> bool:
    """Whether a row of this Arrow type is bytes, a text, or a list of numbers."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return is_sample_type(kind.value_type)
    if _is_list(kind):
        return _is_number(kind.value_type)
    return any(
        is_it(kind)
        for is_it in (
            types.is_binary,
            types.is_large_binary,
            types.is_binary_view,
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_fixed_size_binary,
        )
    )


def bytes_of_rows(kind: Any) -> Any:
    """The Arrow type by which the bytes of its rows are to be read: two with the same one can be
    mixed.
    """
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return bytes_of_rows(kind.value_type)
    if _is_list(kind):
        return kind.value_type
    return pa.binary() if is_sample_type(kind) else kind


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _chunk(array: Any) -> _Chunk:
    import pyarrow as pa
    import pyarrow.types as types

    kind = array.type
    if types.is_dictionary(kind):
        return _chunk(array.dictionary_decode())
    if types.is_binary_view(kind) or types.is_string_view(kind):
        return _chunk(array.cast(pa.large_binary()))
    if not is_sample_type(kind):
        raise FeedError(f"a row of type {kind} is no sample: bytes, text or a list of numbers is")
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if _is_list(kind):
        return _Chunk(*_list_items(array), valid)
    if types.is_fixed_size_binary(kind):
        bounds = (array.offset + np.arange(len(array) + 1)) * kind.byte_width
        return _Chunk(_bytes(array.buffers()[1]), bounds, valid)
    wide = types.is_large_binary(kind) or types.is_large_string(kind)
    return _Chunk(_bytes(array.buffers()[2]), _bounds(array, wide), valid)


def _list_items(array: Any) -> "tuple[memoryview, NDArray[np.int64]]":
    import pyarrow.types as types

    items = array.values
    if items.null_count and array.flatten().null_count:  # not those below a null of a fixed size
        raise FeedError("there are nulls inside its lists")
    if types.is_fixed_size_list(array.type):
        bounds = (array.offset + np.arange(len(array) + 1)) * array.type.list_size
    else:
        bounds = _bounds(array, types.is_large_list(array.type))
    width = items.type.bit_width // 8
    return _bytes(items.buffers()[1]), (bounds + items.offset) * width


def _bounds(array: Any, wide: bool) -> "NDArray[np.int64]":
    kind = np.dtype(np.int64 if wide else np.int32)
    at = array.offset * kind.itemsize
    bounds = np.frombuffer(array.buffers()[1], kind, len(array) + 1, at)
    return bounds.astype(np.int64)


def _bytes(buffer: Any) -> memoryview:
    return memoryview(buffer if buffer is not None else b"").cast("B")
