"""The job that this program runs in, of a batch script or of `salloc`: its nodes are used.

They stay held when they are freed here: the job is its user's. Keepers are a step next to others;
they have no job to end, but say what the nodes have, and that one is lost.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

from flowos._dataclasses import replace
from flowos.drivers._allocators import Job
from flowos.drivers.allocators.slurm import (
    cancel_words,
    jobs_words,
    join_words,
    nodes_words,
    read_complaint,
    read_jobs,
    read_nodes,
    refusal_of_job,
    too_few,
)
from flowos.drivers.allocators.slurm_nodes import (
    SlurmConfig,
    granted,
    job_nodes_words,
    limited,
    read_job_memory,
    read_topology,
    refusal_of_topology,
    topology_words,
)
from flowos.engine._provider import CancelToken
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._allocation import SILENCE_SECONDS, Allocation, keeper_words
from flowos.engine.slurm._commands import answer, answered
from flowos.model import Argv, Ask, Pool, SliceRefused
from flowos.plan import nodes_by_switch

_MEND = "unset SLURM_JOB_ID to hold nodes of a job of their own"


class EnclosingJob:
    """Which of its nodes this program uses. Methods may be called from any thread."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._used: set[str] = set()
        self._changed = threading.Condition()

    def now(self, ask: Ask) -> Job:
        """As Slurm knows it. Raises SliceRefused if it is over, or lacks what is asked for."""
        jobs = self._known()
        complaint = refusal_of_job(ask, self.id, jobs)
        if complaint:
            raise SliceRefused(f"{complaint}; {_MEND}")
        return jobs[0]

    def _known(self) -> tuple[Job, ...]:
        words = jobs_words(job=self.id)
        said = answer(words)
        if said.code != 0 and read_complaint(said.says).kind == "gone":
            return ()
        return answered(words, read_jobs)

    def take(
        self,
        nodes: tuple[str, ...],
        choose: Callable[[tuple[str, ...]], tuple[str, ...]],
        on_waiting: Callable[[str], None],
        cancel: CancelToken,
    ) -> tuple[str, ...]:
        """Those of them that are chosen of what other slices of this program leave; it waits until
        some are."""
        with cancel.wakes(self._changed):
            return self._take(nodes, choose, on_waiting, cancel)

    def _take(
        self,
        nodes: tuple[str, ...],
        choose: Callable[[tuple[str, ...]], tuple[str, ...]],
        on_waiting: Callable[[str], None],
        cancel: CancelToken,
    ) -> tuple[str, ...]:
        announced = False
        while True:
            with self._changed:
                cancel.check()
                free = tuple(node for node in nodes if node not in self._used)
                if chosen := choose(free):
                    self._used.update(chosen)
                    return chosen
                if announced:
                    self._changed.wait()
                    continue
            on_waiting(f"{len(free)} of {len(nodes)} nodes of job {self.id} are free")
            announced = True

    def put_back(self, nodes: set[str]) -> None:
        with self._changed:
            self._used -= nodes
            self._changed.notify_all()


def enclosing_job(pool: Pool) -> EnclosingJob | None:
    """None outside of any, and for a pool whose partition is another one than the job's."""
    id, partition = (os.environ.get(f"SLURM_JOB_{name}", "") for name in ("ID", "PARTITION"))
    other = pool.partition and partition and pool.partition != partition
    return None if not id or other else _job_of(id)


_job_of = cache(EnclosingJob)
"""All pools of this program share its nodes."""


class JoinedAllocation(Allocation):
    """Nodes of a job that goes on when they are freed."""

    def __init__(
        self, session: LaunchSession, words: Argv, job: EnclosingJob, taken: tuple[str, ...]
    ) -> None:
        self._of, self._taken = job, set(taken)
        super().__init__(session, words, SILENCE_SECONDS)

    @property
    def held_job(self) -> str:
        return ""

    def free(self) -> None:
        super().free()
        self._put_back(set(self._taken))

    def cancel(self) -> None:
        with contextlib.suppress(SliceRefused):  # without it they end by silence
            if self._heard.step:  # which srun does not end if it was killed
                answer(cancel_words(self._heard.step))
        self._stop()

    def _keep(self, left: tuple[str, ...], given: set[str]) -> None:  # noqa: ARG002
        self._put_back(given)

    def _put_back(self, nodes: set[str]) -> None:
        self._of.put_back(nodes & self._taken)
        self._taken -= nodes


def join(  # noqa: PLR0913 - the last three by keyword
    session: LaunchSession,
    pool: Pool,
    ask: Ask,
    on_waiting: Callable[[str], None],
    job: EnclosingJob,
    *,
    config: SlurmConfig,
    proof: Path,
    cancel: CancelToken,
) -> JoinedAllocation:
    """Nodes of the job. Raises SliceRefused if they cannot be had.

    config: of the cluster. Else as `allocate`.
    """
    has = job.now(replace(ask, seconds=None)).nodes
    names = job.take(has, _choice(ask, has), on_waiting, cancel)
    keeper = keeper_words(proof, SILENCE_SECONDS, "exit", "${SLURM_CPUS_ON_NODE:-0}")
    try:
        words = join_words(job.id, names, keeper, binds=config.binds, overlaps=config.overlaps)
        joined = JoinedAllocation(session, words, job, names)
    except BaseException:
        job.put_back(set(names))
        raise
    joined.await_keepers(ask.nodes, on_waiting, cancel)
    try:
        _check(pool, ask, joined, job)
    except BaseException:
        joined.free()
        raise
    return joined


def _choice(ask: Ask, has: tuple[str, ...]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """What chooses among nodes of the job that are free; () if they are too few.

    Raises SliceRefused if all of them would be.
    """
    switches = answered(topology_words(), read_topology) if ask.topology else {}
    if complaint := refusal_of_topology(ask, has, switches):
        raise SliceRefused(complaint)

    def choose(free: tuple[str, ...]) -> tuple[str, ...]:
        enough = len(free) >= ask.nodes
        return nodes_by_switch(free, ask.nodes, ask.topology, switches) if enough else ()

    return choose


def _check(pool: Pool, ask: Ask, joined: JoinedAllocation, job: EnclosingJob) -> None:
    known = {info.name: info for info in answered(nodes_words(), read_nodes)}
    memory = answered(job_nodes_words(job.id), read_job_memory) if ask.memory_bytes else {}
    nodes = (limited(kept, memory.get(kept.name, 0)) for kept in joined.nodes)
    have = tuple(granted(kept, known.get(kept.name)) for kept in nodes)
    complaint = too_few(pool, ask, have)
    if complaint:
        raise SliceRefused(f"{complaint}, in job {job.id}; {_MEND}")
