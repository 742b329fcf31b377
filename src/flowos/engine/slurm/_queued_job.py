"""The job of nodes that are waited for, as Slurm says now."""

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.slurm import jobs_words, read_jobs
from flowos.engine.slurm._commands import answered
from flowos.model import SliceRefused

_NAMES = 8
"""Of nodes that are named."""
_UNKNOWN_TIMES = 5
"""A job that has just ended may be forgotten before its srun says so."""


class QueuedJob:
    """name: of the job. It is asked about once a second. says_boots: see `reason`."""

    def __init__(self, name: str, *, says_boots: bool = True) -> None:
        self._name, self._says_boots = name, says_boots
        self._unknown = 0

    def reason(self) -> str:
        """Why it waits, in Slurm's word, or that nodes boot, or why Slurm does not say; "" if it
        waits no more.

        Of a controller that is gone srun waits until it is back. Raises SliceRefused if Slurm does
        not know the job any more, as of one that was killed before it had kept it: srun would wait
        for ever.
        """
        try:
            jobs = answered(jobs_words(name=self._name), read_jobs)
        except SliceRefused as error:
            return str(error)
        self._unknown = 0 if jobs else self._unknown + 1
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
