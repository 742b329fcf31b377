"""What the log of a slice says."""

from pathlib import PurePath

from flowos._dataclasses import dataclass

_LAST_SECOND = 1e11
"""Some time in the year 5138: a later one is no time of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTask:
    """One task that ran: a line of the log.

    worker: the node and a place of the slice on it, as vm:1. start, end: seconds since 1970. bytes:
    of arrays, texts and files among its values. error: the first line of why it failed. attempt:
    from 1 on. cached: its result was found, and it did not run. rounds: of the loops around it, the
    outer one first.
    Raises ValueError for times and sizes that no task has.
    """

    task: str
    worker: str
    start: float
    end: float
    bytes_in: int
    bytes_out: int = 0
    error: str = ""
    attempt: int = 1
    cached: bool = False
    rounds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end < _LAST_SECOND:
            raise ValueError(
                f"its start {self.start!r} and end {self.end!r} are no times of a task"
            )
        if self.bytes_in < 0 or self.bytes_out < 0 or self.attempt < 1:
            raise ValueError("its bytes and attempt may not be negative")

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceLog:
    """The tasks in a log, in the order in which they started.

    damaged: so many lines are left out, damage: which the first one is, and why. unfinished: the
    last line has no end: the slice still writes it, or was killed.
    """

    path: PurePath
    tasks: tuple[LoggedTask, ...]
    damaged: int = 0
    damage: str = ""
    unfinished: bool = False
