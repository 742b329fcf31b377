"""The compiled half of FlowOS."""

import os


class CacheState:
    """What is known of a cache without attaching to it."""

    @property
    def samples(self) -> int:
        """Of the data set."""

    @property
    def cached(self) -> int:
        """Of these are here."""

    @property
    def bytes(self) -> int:
        """They take so much."""

    @property
    def unverified(self) -> int:
        """Written before the last start of the machine, not read since."""

    @property
    def processes(self) -> int:
        """Attached now."""

class Cache:
    """Samples on the storage of this node, shared by its processes."""

    def __init__(self, folder: str | os.PathLike, fingerprint: int, samples: int, most_bytes: int = 0, least_free_bytes: int = 1073741824, segment_bytes: int = 268435456) -> None:
        """
        Attaches, and makes it where it is not there. FeedError: it cannot be had here.
        """

    def has(self, sample: int) -> bool:
        """It is here."""

    def bytes_of(self, sample: int) -> bytes | None:
        """None: it is not here; it was damaged, and is forgotten now."""

    def drop(self, sample: int) -> None:
        """Forgets it."""

    def complaint(self) -> str:
        """The first reason for which something was not kept; empty: all was."""

    def damaged(self) -> int:
        """Reads that did not find what was published."""

    def stolen(self) -> int:
        """Claims taken over from dead processes."""

    @staticmethod
    def state_of(folder: str | os.PathLike) -> CacheState:
        """FeedError: there is no cache."""

    @staticmethod
    def verify(folder: str | os.PathLike) -> int:
        """Reads and checks every sample, forgets damaged ones: how many were."""

    @staticmethod
    def clear(folder: str | os.PathLike) -> int:
        """Removes it: bytes that were freed. FeedError: somebody uses it."""

def instruction_sets() -> list[str]:
    """The vector instruction sets that CPU and system allow, narrow first."""

def compiler() -> str:
    """The compiler that built this module, with its version."""
