"""Entries of a storage, keys of a catalog: their order, their number, their digest."""

import hashlib
import os
import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowos.feeder._interfaces import Entry

if TYPE_CHECKING:
    from flowos._native import Catalog, Counter

_COUNTING = threading.Lock()


def in_byte_order(entries: Sequence[Entry]) -> list[Entry]:
    """As the native listing of folders has them."""
    return sorted(entries, key=lambda entry: entry.key.encode(errors="surrogateescape"))


def add(found: "Counter | None", more: int) -> None:
    """From any thread."""
    if found is not None:
        with _COUNTING:
            found.value += more


def number_of(catalog: "Catalog", key: str) -> int | None:
    """Samples are in byte order of their keys."""
    everyone, searched = range(len(catalog)), os.fsencode(key)
    number = bisect_left(everyone, searched, key=lambda sample: os.fsencode(catalog.name(sample)))
    is_there = number < len(catalog) and catalog.name(number) == key
    return number if is_there else None


def digest(*words: str) -> str:
    """Of some words, in this order."""
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:32]
