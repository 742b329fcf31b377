"""The job of nodes that are waited for, as Slurm says now."""

import time

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.slurm import jobs_words, read_jobs
from flowos.engine.slurm._commands import answered
from flowos.model import SliceRefused

_NAMES = 8
"""Of nodes that are named."""
_UNKNOWN_TIMES = 5
"""A job that has just ended may be forgotten before its srun says so."""


class QueuedJob:
    """name: of the job, or "" for one that is held, of which nothing is asked.

    says_boots: that its nodes boot is a reason. ask_seconds: so long an answer counts.
    """

    def __init__(self, name: str, *, says_boots: bool = True, ask_seconds: float = 1.0) -> None:
        self._name, self._says_boots, self._ask_seconds = name, says_boots, ask_seconds
        self._is_known, self._unknown = False, 0
        self._reason, self._ask_at = "", 0.0

    def reason(self, *, queued: bool) -> str:
        """Why it waits, in Slurm's word, or that nodes boot, or why Slurm does not say; "" if it
        waits no more. queued: srun has said that the job waits.

        Of a controller that is gone srun waits until it is back. Raises SliceRefused if Slurm does
        not know the job any more, as of one that was killed before it had kept it: srun would wait
        for ever.
        """
        if self._name and time.monotonic() >= self._ask_at:
            self._reason = self._asked(queued)
            self._ask_at = time.monotonic() + self._ask_seconds
        return self._reason

    def _asked(self, queued: bool) -> str:
        try:
            jobs = answered(jobs_words(name=self._name), read_jobs)
        except SliceRefused as error:
            return str(error)
        self._is_known = self._is_known or queued or bool(jobs)
        self._unknown = 0 if jobs or not self._is_known else self._unknown + 1
        if self._unknown == _UNKNOWN_TIMES:
            raise SliceRefused(
                "Slurm does not know the job any more that waited for nodes: its controller has "
                "lost it; ask again"
            )
        waiting = next((job for job in jobs if job.phase == "waiting"), None)
        if waiting is None:
            return ""
        return waiting.reason or (_booting(waiting) if self._says_boots else "")


def _booting(job: Job) -> str:
    """Nodes that Slurm powers up: of them it gives no reason."""
    if job.state != "CONFIGURING" or not job.nodes:
        return ""
    more = len(job.nodes) - _NAMES
    return f"{', '.join(job.nodes[:_NAMES])}{f' and {more} more' * (more > 0)}: booting"
