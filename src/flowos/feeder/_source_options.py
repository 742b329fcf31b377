"""Options of a source other than its path, and when two samples are equal."""

import math
from typing import Any

import numpy as np

from flowos._dataclasses import dataclass
from flowos.feeder._extensions import ALL, SampleFilter
from flowos.model import FeedError, brief_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the samples of a source are.

    member: of a tar's members with the same stem the one that is the sample, such as "jpg"; in
    lower case, as the endings of members are compared.
    dtype, length: of token arrays. column, label_column: of Parquet files.
    files: of a folder or a bucket those that are samples.
    """

    member: str = ""
    dtype: np.dtype[Any] | None = None
    length: int | None = None
    column: str = ""
    label_column: str = ""
    files: SampleFilter = ALL


_ARRAYS = "token arrays, .npy or .bin files that are mounted here"
_GOES_WITH = {"member": "tar shards", "dtype": _ARRAYS, "length": _ARRAYS}


def refuse_others(where: str, asked: SourceOptions, *fitting: str) -> None:
    """Raises FeedError if one is given that is not among the fitting: it would change nothing."""
    for name, kind in _GOES_WITH.items():
        value = getattr(asked, name)
        if name not in fitting and value is not None and value != "":
            said = repr(value) if isinstance(value, str) else value
            raise FeedError(f"Feed: {name}={said} goes with {kind}; {where} has none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What each sample is, where all are equal: a batch of n of them is one array (n, *shape)."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def asked(
    member: str,
    dtype: object,
    length: int | None,
    column: str,
    label_column: str,
    files: SampleFilter = ALL,
) -> SourceOptions:
    """Raises FeedError for an invalid value."""
    for name, word in (("member", member), ("column", column), ("label_column", label_column)):
        if not isinstance(word, str):
            raise FeedError(f"Feed: {name}={brief_repr(word)}; expected a name")
    if length is not None and (type(length) is not int or length < 1):
        raise FeedError(f"Feed: length={brief_repr(length)}; expected a whole number above 0")
    return SourceOptions(
        member=member.lstrip(".").lower(),
        dtype=_dtype_of(dtype),
        length=length,
        column=column,
        label_column=label_column,
        files=files,
    )


def _dtype_of(given: object) -> np.dtype[Any] | None:
    if given is None:
        return None
    try:
        dtype: np.dtype[Any] = np.dtype(given)  # type: ignore[call-overload]
    except TypeError:
        raise FeedError(
            f"Feed: dtype={brief_repr(given)} is not a dtype; give one as 'uint16'"
        ) from None
    if dtype.hasobject or dtype.itemsize == 0:
        raise FeedError(f"Feed: dtype={dtype} has no fixed size; give one as 'uint16'")
    return dtype
