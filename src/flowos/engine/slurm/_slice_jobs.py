"""The jobs of slices that other programs hold, or held: found by their names, and by numbers."""

import contextlib
from collections.abc import Sequence
from typing import Literal

from flowos._dataclasses import replace
from flowos.drivers._allocators import Job
from flowos.drivers.allocators.slurm import cancel_words, job_names, jobs_words, read_jobs
from flowos.drivers.allocators.slurm_accounts import (
    accounts_words,
    read_accounts,
    read_steps,
    steps_words,
)
from flowos.engine.slurm._commands import answered
from flowos.model import SliceAccounts, SliceRefused

_MORE = 8
"""A program may die while its slice gets another job."""


def slurm_jobs(slice: str, count: int) -> tuple[Job, ...]:
    """Those that Slurm knows, also for a while after their end.

    count: so many are known. Raises SliceRefused if Slurm does not answer.
    """
    return answered(jobs_words(name=job_names(slice, count + _MORE)), read_jobs)


def slurm_job_end(slice: str, count: int) -> float | Literal["held", "unknown"]:
    """For how many seconds a slice was held, whose program is gone. Raises as `slurm_jobs` does."""
    jobs = slurm_jobs(slice, count)
    if any(job.phase != "over" for job in jobs):
        return "held"
    return max((job.used_seconds or 0.0 for job in jobs), default="unknown")


def cancel_slurm_jobs(slice: str, count: int) -> None:
    """End what is held, and what waits. Raises SliceRefused if Slurm does not."""
    for job in slurm_jobs(slice, count):
        if job.phase != "over":
            answered(cancel_words(job.id), str)


def slurm_accounts(jobs: Sequence[str], *, running: bool) -> SliceAccounts | None:
    """What Slurm accounted for these jobs; None if it knows none of them.

    Raises SliceRefused where it has no accounts, and of jobs that run knows nothing either.
    """
    now = _of_steps(jobs) if running else SliceAccounts()
    try:
        found = answered(accounts_words(jobs), read_accounts)
    except SliceRefused:
        if now == SliceAccounts():
            raise
        return now
    return _together(found, now) if running else found


def _of_steps(jobs: Sequence[str]) -> SliceAccounts:
    found = SliceAccounts()
    for job in jobs:
        with contextlib.suppress(SliceRefused):
            found = _together(found, answered(steps_words(job), read_steps))
    return found


def _together(one: SliceAccounts | None, other: SliceAccounts) -> SliceAccounts:
    if one is None:
        return other
    peaks = [peak for peak in (one.max_rss_bytes, other.max_rss_bytes) if peak is not None]
    return replace(
        one,
        cpu_seconds=_sum(one.cpu_seconds, other.cpu_seconds),
        max_rss_bytes=max(peaks, default=None),
        joules=_sum(one.joules, other.joules),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one + (other or 0.0)
