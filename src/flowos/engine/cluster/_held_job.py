"""What a provider of a cluster asks of the job that holds its nodes."""

from collections.abc import Callable
from typing import Protocol

from flowos.drivers._allocators import KeptNode


class HeldJob(Protocol):
    """What holds nodes of a job: this process, or one that outlives it.

    job: its number. held_job: the same; "" of one that goes on when it is freed. is_divisible:
    some of its nodes may be given back alone. nodes: without those that are lost, or given back.
    """

    @property
    def job(self) -> str: ...
    @property
    def held_job(self) -> str: ...
    @property
    def is_divisible(self) -> bool: ...
    @property
    def nodes(self) -> tuple[KeptNode, ...]: ...

    def ended(self, seconds: float | None = 0.0) -> str | None:
        """Why it is over, once it is; None if it still is not after so many seconds."""
        ...

    def free(self) -> None:
        """Give all nodes back. Twice is once."""
        ...

    def watch(self, on_lost: Callable[[str, str], None], on_end: Callable[[str], None]) -> None:
        """on_lost: gets the name of a node that is gone, and why. on_end: why it is over, once it
        is before it was freed."""
        ...

    def lose(self, name: str, why: str) -> None:
        """This node is taken to be gone."""
        ...

    def release(self, names: set[str]) -> None:
        """Give these nodes back; with the last of them all is freed."""
        ...
