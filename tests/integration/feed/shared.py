"""What the tests of feeds share: samples with bytes of their own, and what a feed gives of them."""

import hashlib
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import flowos as fo

CLASSES = ("ant", "bee", "cat", "dog")


def content(name: str) -> bytes:
    """300 to 4,400 bytes that only this name has."""
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * 140)[: 300 + int.from_bytes(seed[:2], "big") % 4100]


def make_folder(root: Path, each: int = 25) -> list[str]:
    """`each` files in every class; their paths below the root, sorted."""
    names = [f"{name}/{number:03}.jpg" for name in CLASSES for number in range(each)]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content(name))
    return names


def flat(lists: Iterable[list[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(lists))


def taken(pairs: Iterable[Any], feed: fo.Feed) -> list[str]:
    """The names of the samples in their order; each has the bytes of its file."""
    names = []
    for samples, _ in pairs:
        for sample, data in zip(samples.indices.tolist(), samples, strict=True):
            assert bytes(data) == content(feed.name(sample))
            names.append(feed.name(sample))
    return names


def orders(feed: fo.Feed, epoch: int) -> list[list[int]]:
    return [samples.indices.tolist() for samples, _ in feed.epoch(epoch)]
