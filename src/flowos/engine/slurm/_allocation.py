"""Nodes that Slurm holds for this process, by a keeper on each: the first step of their job.

Keepers read lines from us through srun: one every few seconds, and one that frees the nodes. The
end of their input says that this process is gone; srun's other process frees the nodes when srun is
killed. Silence says that all of them are gone at once, as when a login node fails or a session is
killed: nothing but a keeper is left then to end the job, as Slurm does not close its input. Further
steps run next to the keepers.
"""

import contextlib
import secrets
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flowos.drivers._allocators import KeptNode
from flowos.drivers.allocators.slurm import (
    cancel_words,
    hold_words,
    job_name,
    jobs_words,
    keep_words,
    nodes_words,
    read_complaint,
    read_jobs,
    read_nodes,
    read_waiting,
)
from flowos.drivers.allocators.slurm_nodes import (
    read_end,
    read_keeper,
    read_lost,
    read_topology,
    topology_words,
)
from flowos.drivers.allocators.slurm_power import comments_words, read_comment
from flowos.engine._provider import NEVER, CancelToken
from flowos.engine.launch._keeper import FREE, HELLO, leave_to_keepers, start_keeper
from flowos.engine.launch._prepared import own_variables
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._commands import (
    MungeGone,
    answer,
    answered,
    answers,
    refuse_without_munge,
)
from flowos.engine.slurm._queued_job import QueuedJob
from flowos.model import Argv, Ask, Exited, Killed, Pairs, Pool, SliceRefused

_END_JOB = (
    "[ $SLURM_PROCID = 0 ] || sleep $1; "
    "until scancel $SLURM_JOB_ID || scontrol ping >/dev/null; do sleep 1; done; exit"
)
"""The first one ends the job at once; the others, should that node be lost, a little later.

A step that is ended leaves its job held, if srun dies meanwhile: so TERM ends the job too. A
controller that is gone may come back; of one that is there a job that is over is no error.
"""

_KEEPER = (
    "end() {{ {end}; }}; "
    'trap "end 0" TERM; '
    'while read -r name value; do [ "$name" = Cpus_allowed_list: ] && cpus=$value; done '
    "</proc/self/status; "
    'while read -r name value _; do [ "$name" = MemTotal: ] && kib=$value; done </proc/meminfo; '
    "for turn in {{1..10}}; do proof=$(cat {proof} 2>/dev/null) && break; "
    "ls {folder} >/dev/null 2>&1; sleep 0.2; done; "
    f'echo "{HELLO} $SLURM_JOB_ID.$SLURM_STEP_ID $SLURMD_NODENAME $SLURM_LAUNCH_NODE_IPADDR $cpus '
    "{count} $kib "
    "${{SLURM_GPUS_ON_NODE:-0}}:${{CUDA_VISIBLE_DEVICES// /}} "
    '${{SLURM_TOPOLOGY_ADDR:--}} $proof"; '
    f'while read -r -t {{silence}} line; do [ "$line" = {FREE} ] && exit; done; end 5'
)
"""A file system between machines may remember for a while that a folder was not there, or was
another one; to list it refreshes that, with NFS."""

SILENCE_SECONDS = 120.0
"""Of a driver that is stopped for longer (Ctrl-Z, its machine sleeps) the nodes are freed."""

_FAILED = "Slurm says that it failed"
_ASK_AGAIN_SECONDS = 1.0
_FREE_SECONDS = 10.0
_RELEASE_SECONDS = 10.0
_STOP_SECONDS = 0.5


def _nothing() -> None:
    """Default check: refuses nothing."""


class Allocation:
    """See `HeldJob`. Nodes of a job that runs until `free`.

    words: what srun starts keepers by. name: of the job.
    """

    is_divisible = True

    def __init__(
        self, session: LaunchSession, words: Argv, silence_seconds: float, name: str = ""
    ) -> None:
        self._name = name
        self._heard = heard = _Heard()
        self._on_end: Callable[[str], None] = _ignore
        self._srun, self._lifeline = start_keeper(
            session, words, _variables(), heard.keeper, heard.srun
        )
        threading.Thread(target=self._beat, args=(silence_seconds / 8,), daemon=True).start()

    @property
    def step(self) -> str:
        """Of its keepers, as 17.0; "" until one is there."""
        return self._heard.step

    @property
    def job(self) -> str:
        return self.step.partition(".")[0]

    @property
    def held_job(self) -> str:
        """The same; "" of a job that goes on without it."""
        return self.job

    @property
    def nodes(self) -> tuple[KeptNode, ...]:
        """By name."""
        return tuple(self._heard.nodes[name] for name in sorted(self._heard.nodes))

    def ended(self, seconds: float | None = 0.0) -> str | None:
        """Why it is over, once it is; None if it still is not after so many seconds."""
        try:
            end = self._srun.wait(seconds).end
        except TimeoutError:
            return None
        killed = "its srun was killed" if isinstance(end, Killed) else "its job ended"
        return self._heard.complaint() or killed

    def free(self) -> None:
        """Give all nodes back. Twice is once."""
        self._on_end = _ignore
        self._heard.follow(_ignore_lost)
        if self._lifeline.is_open and not answers():  # srun could not end the job: keepers do
            self._abandon()
            return
        self._lifeline.free()
        seconds = 0.0 if self._heard.lost else _FREE_SECONDS  # srun would wait for its keeper
        if self.ended(seconds) is None or self._srun.wait().end != Exited(0):
            with contextlib.suppress(SliceRefused):  # the controller is gone: keepers end the job
                self.cancel()

    def _abandon(self) -> None:
        """Slurm cannot be asked: keepers end the job once it can."""
        self._lifeline.close()
        self._stop()

    def watch(self, on_lost: Callable[[str, str], None], on_end: Callable[[str], None]) -> None:
        """on_lost: gets the name of a node that is gone, and why. on_end: why it is over, once it
        is before it was freed."""
        self._on_end = on_end
        self._heard.follow(on_lost)
        why = self.ended()
        if why is not None and self._lifeline.is_open:
            on_end(why)

    def lose(self, name: str, why: str) -> None:
        """This node is taken to be gone."""
        self._heard.lose(name, why)

    def release(self, names: set[str]) -> None:
        """Give these nodes back; with the last of them all is freed.

        Raises SliceRefused if Slurm keeps them until then.
        """
        left = tuple(sorted(set(self._heard.nodes) - names))
        if not left:
            self.free()
            return
        self._keep(left, names)
        self._heard.forget(names)

    def _keep(self, left: tuple[str, ...], given: set[str]) -> None:
        """Give back all but those that are left."""
        until = time.monotonic() + _RELEASE_SECONDS
        while True:
            try:
                answered(keep_words(self.job, left), str)
            except SliceRefused as error:  # in a job's first seconds it may be too early for Slurm
                if time.monotonic() > until:
                    kept = ", ".join(sorted(given))
                    raise SliceRefused(f"{kept} held until all is freed: {error}") from None
                time.sleep(_ASK_AGAIN_SECONDS)
            else:
                return

    def cancel(self) -> None:
        """End it although its keepers do not answer, or before it has any."""
        with contextlib.suppress(SliceRefused):
            if self.job:  # srun would wait for tasks of nodes that are lost
                answer(cancel_words(self.job))
        self._stop()
        for job in answered(jobs_words(name=self._name), read_jobs):
            if job.phase != "over":
                answer(cancel_words(job.id))

    def _stop(self) -> None:
        self._srun.stop(_STOP_SECONDS)
        self._srun.wait()

    def await_keepers(
        self,
        count: int,
        on_waiting: Callable[[str], None],
        cancel: CancelToken,
        check: Callable[[], object] = _nothing,
        says_boots: bool = True,
    ) -> None:
        """Until there are so many. Raises SliceRefused if there will not be.

        check: raises why there cannot be; called once, if they are not there at once. Its
        exception, one of `on_waiting`, or an interrupt leaves nothing held and nothing waiting.
        says_boots: nodes that boot are a reason to wait.
        """
        job = QueuedJob(self._name, says_boots=says_boots)
        try:
            with cancel.wakes(self._heard.changed):
                self._await_keepers(count, on_waiting, cancel, check, job)
            leave_to_keepers(self._srun)
        except MungeGone:
            self._abandon()
            raise
        except BaseException:
            with contextlib.suppress(SliceRefused):  # without a controller, which is why it ends
                self.cancel()
            self.free()
            raise

    def _await_keepers(
        self,
        count: int,
        on_waiting: Callable[[str], None],
        cancel: CancelToken,
        check: Callable[[], object],
        job: QueuedJob,
    ) -> None:
        reason, heard, slow_at = "", self._heard, time.monotonic() + _ASK_AGAIN_SECONDS
        while len(heard.nodes) < count:
            why = self.ended()
            if len(heard.nodes) >= count:
                return
            slow = heard.waits or time.monotonic() >= slow_at
            if why is not None or slow:
                check()
                check = _nothing
            if why is not None:
                raise SliceRefused(self._comment() or why)
            if slow and (found := job.reason(queued=heard.waits)) not in ("", reason):
                reason = found
                on_waiting(reason)
            with heard.changed:
                cancel.check()
                if len(heard.nodes) < count:
                    heard.changed.wait(_ASK_AGAIN_SECONDS)

    def _comment(self) -> str:
        """Why a node that Slurm powers up got no machine, which Slurm itself does not say."""
        with contextlib.suppress(SliceRefused):
            return answered(comments_words(self._name), read_comment)
        return ""

    def _beat(self, seconds: float) -> None:
        """Tell keepers that we are there; if srun ends first, see to it that its job does."""
        while self.ended(seconds) is None:
            if not self._lifeline.beat():
                return
        with self._heard.changed:  # keepers may be waited for
            self._heard.changed.notify_all()
        if self._lifeline.is_open:
            self._on_end(self.ended() or "")
            with contextlib.suppress(SliceRefused):  # the controller is gone: keepers fall silent
                self.cancel()


def _ignore(why: str) -> None:
    """Default callback: does nothing."""


def _ignore_lost(name: str, why: str) -> None:
    """Default callback: does nothing."""


class _Heard:
    """What keepers and srun have said so far."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.nodes: dict[str, KeptNode] = {}
        self.step = ""
        self.waits = False
        self.lost: dict[str, str] = {}
        self._on_lost: Callable[[str, str], None] = _ignore_lost
        self._said: list[str] = []

    def keeper(self, line: str) -> None:
        words = line.split()
        with self.changed:
            if words[:1] == [HELLO] and (kept := read_keeper(words[1:])) is not None:
                self.step, node = kept
                self.nodes[node.name] = node
            self.changed.notify_all()

    def srun(self, line: str) -> None:
        said = read_waiting(line)
        for name in read_lost(line):
            # not in this thread, by which launches end: the callback may wait for some
            threading.Thread(target=self.lose, args=(name, _FAILED), daemon=True).start()
        with self.changed:
            if said is None:
                self._said.append(line)
            else:
                self.waits = said[0] == "waiting"
            self.changed.notify_all()

    def lose(self, name: str, why: str) -> None:
        with self.changed:
            if self.nodes.pop(name, None) is None:
                return
            self.lost[name] = why
        self._on_lost(name, why)

    def follow(self, on_lost: Callable[[str, str], None]) -> None:
        """Call it of each node that is lost, those of before too."""
        with self.changed:
            self._on_lost = on_lost
            before = tuple(self.lost.items())
        for name, why in before:
            on_lost(name, why)

    def forget(self, names: set[str]) -> None:
        with self.changed:
            for name in names:
                self.nodes.pop(name, None)

    def complaint(self) -> str:
        with self.changed:
            said = "\n".join(self._said)
            return read_end(said) or read_complaint(said).text


def allocate(  # noqa: PLR0913 - the last four by keyword
    session: LaunchSession,
    pool: Pool,
    ask: Ask,
    on_waiting: Callable[[str], None],
    silence_seconds: float = SILENCE_SECONDS,
    proof: Path = Path("/dev/null"),
    cancel: CancelToken = NEVER,
    check: Callable[[], object] = _nothing,
) -> Allocation:
    """Wait until the nodes are there. Raises SliceRefused if they cannot be had, in Slurm's words.

    proof: a file whose words each keeper says, if its node sees it. check: raises why they can
    never be had; called if they are not there at once.
    on_waiting: gets why it waits, in Slurm's word, as often as that changes. An exception of it,
    or an interrupt, leaves nothing held and nothing waiting.
    """
    name = job_name(ask.id or secrets.token_hex(8))
    if ask.memory_bytes or ask.topology == "pack":  # for which it is asked first
        refuse_without_munge()
    has_tree = ask.topology == "pack" and bool(answered(topology_words(), read_topology))
    keeper = keeper_words(proof, silence_seconds, _END_JOB)
    all_have = bool(ask.memory_bytes) and _all_have(ask.memory_bytes, pool.partition)
    words = hold_words(pool, ask, name, keeper, has_tree=has_tree, have_memory=all_have)
    allocation = Allocation(session, words, silence_seconds, name)
    allocation.await_keepers(ask.nodes, on_waiting, cancel, check, says_boots=not ask.kernel)
    return allocation


def _all_have(memory_bytes: int, partition: str) -> bool:
    """Whether each node has so much: a job gets as much of a whole node as it asks for, no more."""
    nodes = answered(nodes_words(partition), read_nodes)
    return bool(nodes) and all(node.memory_bytes >= memory_bytes for node in nodes)


def keeper_words(proof: Path, silence_seconds: float, end: str, count: str = "0") -> Argv:
    """The keeper, as srun starts it. end: what the shell does once this process is gone.

    count: of the node's CPUs are ours, to the shell; 0 is all, as nodes that we hold are whole.
    """
    folder, file = (shlex.quote(str(path)) for path in (proof.parent, proof))
    words = {"end": end, "silence": silence_seconds, "proof": file, "folder": folder}
    script = _KEEPER.format(**words, count=count)
    return ("bash", "-c", script)


def _variables() -> Pairs:
    """Ours, but for those of a job around us: of them srun would take what is asked for."""
    return tuple((n, v) for n, v in own_variables() if n == "SLURM_CONF" or n[:6] != "SLURM_")
