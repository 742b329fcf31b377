"""Values on their way to the process of a language: arrays by columns, texts that end with 0."""

from collections.abc import Iterable, Sequence
from typing import Any

from flowos.model import PortIncompatible

__flowos_frames__ = True
Sent = tuple[tuple[float, ...], int, Any]
"""What the language has to know of a value (its kind, axes, extents), its bytes, what is written:
bytes, or an array and the dtype that it crosses as."""


def as_texts(where: str, texts: Sequence[str]) -> tuple[int, bytes]:
    """Their bytes, and how many. PortIncompatible for one that cannot be sent so."""
    joined = "".join(f"{text}\0" for text in texts)
    if joined.count("\0") != len(texts):
        raise PortIncompatible(f"{where}: it has a NUL character, which ends a text there")
    try:
        content = joined.encode()
    except UnicodeEncodeError as error:
        raise PortIncompatible(f"{where}: {error}") from None
    return len(content), content


def write(to: memoryview, values: Iterable[Sent]) -> None:
    """One after the other; arrays by columns."""
    import numpy as np

    at = 0
    for _, size, what in values:
        if isinstance(what, bytes):
            to[at : at + size] = what
        else:
            numbers, dtype = what
            np.ndarray(numbers.shape, dtype, to, at, order="F")[...] = numbers
        at += size


def texts_at(
    values: memoryview, at: int, count: int, errors: str = "strict"
) -> tuple[list[str], int]:
    """The texts that begin there, and where they end."""
    content = bytes(values[at:])
    texts = content.split(b"\0", count)[:count]
    end = at + sum(map(len, texts)) + count
    return [text.decode(errors=errors) for text in texts], end
