"""The file of a matrix that all contestants read: rows and entries (int64), then the values
(float64), where each row starts (int32, rows + 1) and the columns (int32), as scipy.sparse has it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEAD_BYTES = 16


@dataclass(frozen=True)
class CsrFile:
    rows: int
    values: NDArray[np.float64]
    starts: NDArray[np.int32]
    columns: NDArray[np.int32]

    @property
    def entries(self) -> int:
        return len(self.values)

    def scipy(self) -> Any:
        """The matrix for scipy.sparse, without a copy."""
        from scipy.sparse import csr_matrix

        parts = (self.values, self.columns, self.starts)
        return csr_matrix(parts, shape=(self.rows, self.rows), copy=False)


def read(path: Path) -> CsrFile:
    """Read a file into memory."""
    rows, entries = _head(path)

    def part(dtype: type, count: int, offset: int) -> Any:
        return np.fromfile(path, dtype, count, offset=offset)

    return _parts(rows, entries, part)


def mapped(path: Path) -> CsrFile:
    """Map a file into memory."""
    rows, entries = _head(path)
    return _parts(rows, entries, _mapping(path, "r"))


def create(path: Path, rows: int, entries: int) -> CsrFile:
    """Create a file, to be filled in place."""
    np.array([rows, entries], np.int64).tofile(path)
    return _parts(rows, entries, _mapping(path, "r+"))


def write(path: Path, matrix: Any) -> None:
    """Write a matrix of compressed rows, with attributes named as in scipy.sparse."""
    with path.open("wb") as file:
        np.array([matrix.shape[0], len(matrix.data)], np.int64).tofile(file)
        matrix.data.astype(np.float64, copy=False).tofile(file)
        matrix.indptr.astype(np.int32, copy=False).tofile(file)
        matrix.indices.astype(np.int32, copy=False).tofile(file)


def _head(path: Path) -> tuple[int, int]:
    rows, entries = np.fromfile(path, np.int64, 2)
    return int(rows), int(entries)


def _mapping(path: Path, mode: Any) -> Callable[[type, int, int], Any]:
    return lambda dtype, count, offset: np.memmap(path, dtype, mode, offset, count)


def _parts(rows: int, entries: int, part: Callable[[type, int, int], Any]) -> CsrFile:
    starts_at = HEAD_BYTES + 8 * entries
    return CsrFile(
        rows=rows,
        values=part(np.float64, entries, HEAD_BYTES),
        starts=part(np.int32, rows + 1, starts_at),
        columns=part(np.int32, entries, starts_at + 4 * (rows + 1)),
    )
