"""Record of a run of a program that used slices."""

from typing import Literal

from flowos._dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SliceUse:
    """Slices of one kind that a process held: of this flow, pool, node and environment.

    slices: how many; runs: number of runs started on them, including the items of a `map`; failed:
    number of those that ended with an error; failures: the errors of the last ones; hits:
    number of results of tasks that were taken from what was kept; held_seconds: total. logs: the
    files with their tasks, of many slices the last ones.
    """

    flow: str
    pool: str
    node: str
    env: str
    slices: int
    runs: int
    held_seconds: float
    hits: int = 0
    logs: tuple[str, ...] = ()
    failed: int = 0
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Process:
    """A program's run, from its first slice to its end. Times are ISO 8601 in UTC.

    ended: "" while it runs; for a lost process, the time of its last sign of life. cpu_seconds: of
    it and its ended children, over all threads; max_rss_bytes: of the largest of them.
    """

    id: str
    argv: tuple[str, ...]
    host: str
    pid: int
    started: str
    ended: str = ""
    state: Literal["running", "ended", "lost"] = "running"
    uses: tuple[SliceUse, ...] = ()
    cpu_seconds: float = 0.0
    max_rss_bytes: int = 0
