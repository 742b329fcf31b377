"""A matrix as the native solver takes it: compressed sparse rows, looked at where they lie."""

from copy import copy
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowos._dataclasses import dataclass
from flowos.model import SolveError, brief_repr

Indices: TypeAlias = NDArray[Any]
"""int32 or int64"""

Values: TypeAlias = NDArray[np.float64]

_USUAL = (np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Csr:
    """A square matrix as compressed sparse rows, its arrays called as scipy.sparse calls them.

    data: float64, (entries,). indices, the columns: int32 or int64, (entries,). indptr, where each
    row begins: of the same type, (rows + 1,).
    """

    data: Values
    indices: Indices
    indptr: Indices

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.indices)


class NativeMatrix(Protocol):
    """A matrix in native memory, which lives as long as its arrays."""

    @property
    def starts(self) -> NDArray[np.int32]: ...
    @property
    def columns(self) -> NDArray[np.int32]: ...
    @property
    def values(self) -> NDArray[np.float64]: ...


def csr_of(held: NativeMatrix) -> Csr:
    return Csr(data=held.values, indices=held.columns, indptr=held.starts)


def as_csr(given: object, *, lower: bool = False, symmetrize: bool = False) -> Csr:
    """Any square matrix of scipy.sparse; CSR and, as it is symmetric, CSC without a copy, unless
    entries are given several times, which are added.

    lower: what lies above the diagonal is not looked at. symmetrize: (A + A') / 2 instead of A.
    Raises SolveError if it is no such matrix.
    """
    if lower and symmetrize:
        raise SolveError("lower and symmetrize: choose one; lower looks at one triangle only")
    found = given if isinstance(given, Csr) else _csr_in(given, lower)
    if not lower and not symmetrize:
        return found
    from flowos._native import from_lower, symmetrized

    make = from_lower if lower else symmetrized
    return csr_of(make(found.indptr, found.indices, found.data))


def _csr_in(given: Any, lower: bool) -> Csr:
    if not (hasattr(given, "tocsr") and hasattr(given, "shape")):
        raise SolveError(
            f"A={brief_repr(given)}: expected a sparse matrix; of a dense one take "
            "scipy.sparse.csr_array(A)"
        )
    shape = tuple(given.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise SolveError(f"A has shape {shape}: it must be square")
    if not shape[0]:
        raise SolveError("A is empty")
    if np.ma.is_masked(getattr(given, "data", None)):
        raise SolveError("A has masked values: fill them, as with A.data.filled(0)")
    rows = given.T if _is_by_columns(given) and not lower else _rows_of(given)
    _check_arrays(rows)
    rows = _tidied(_in_usual_types(rows), shape[0])
    entries = int(rows.indptr[-1])
    types = {rows.indptr.dtype, rows.indices.dtype}
    index = np.int32 if types == {np.dtype(np.int32)} else np.int64
    return Csr(
        data=np.ascontiguousarray(rows.data[:entries], np.float64),
        indices=np.ascontiguousarray(rows.indices[:entries], index),
        indptr=np.ascontiguousarray(rows.indptr, index),
    )


def _check_arrays(rows: Any) -> None:
    """A person may have set them, which SciPy does not look at."""
    parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    for name, part in parts.items():
        if not isinstance(part, np.ndarray):
            raise SolveError(f"A: {name} is {brief_repr(part)}: expected an array")
    if parts["data"].dtype.kind not in "biuf":
        raise SolveError(f"A holds {parts['data'].dtype}: expected real numbers")
    whole = all(parts[name].dtype.kind in "iu" for name in ("indices", "indptr"))
    if not whole or any(part.ndim != 1 for part in parts.values()):
        said = ", ".join(f"{name} ({a.dtype}, {a.shape})" for name, a in parts.items())
        raise SolveError(f"A: {said} must be one-dimensional, and indices and indptr whole numbers")


def _in_usual_types(rows: Any) -> Any:
    """The same, or a copy with those of indices that SciPy's own functions take."""
    if rows.indices.dtype in _USUAL and rows.indptr.dtype in _USUAL:
        return rows
    other = copy(rows)
    other.indices, other.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return other


def _rows_of(given: Any) -> Any:
    """Entries that are given several times may be added here: in a type that takes their sum."""
    kept = getattr(given, "dtype", None)
    by_rows = getattr(given, "format", "csr") == "csr"
    if by_rows or getattr(kept, "kind", "") not in "biuf" or kept == np.float64:
        return given.tocsr()
    return given.astype(np.float64).tocsr()


def _is_by_columns(given: Any) -> bool:
    """What is no matrix of SciPy's need not say its format; it says how it becomes rows."""
    return getattr(given, "format", None) == "csc"


def _tidied(rows: Any, count: int) -> Any:
    """The same, or a copy where entries are given several times. SciPy checks little of it."""
    starts, entries = rows.indptr, min(len(rows.indices), len(rows.data))
    if len(starts) != count + 1 or starts[0] != 0 or starts.max() > entries:
        raise SolveError(f"A: indptr must have {count + 1} numbers, from 0 to that of the entries")
    if rows.has_canonical_format:
        return rows
    if (np.diff(starts) < 0).any():
        raise SolveError("A: indptr must not fall")
    added = rows.astype(np.float64)  # in a small integer, a sum would wrap around
    added.sum_duplicates()
    return added
