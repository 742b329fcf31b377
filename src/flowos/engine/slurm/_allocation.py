"""Nodes that Slurm holds for this process, by a keeper on each: the first step of their job.

Keepers read lines from us through srun: one every few seconds, and one that frees the nodes. The
end of their input says that this process is gone; srun's other process frees the nodes when srun is
killed. Silence says that all of them are gone at once, as when a login node fails or a session is
killed: nothing but a keeper is left then to end the job, as Slurm does not close its input. Further
steps run next to the keepers.
"""

import contextlib
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flowos.drivers import runtime_named
from flowos.drivers.allocators.slurm import (
    cancel_words,
    hold_words,
    jobs_words,
    keep_words,
    read_complaint,
    read_jobs,
    read_waiting,
)
from flowos.drivers.allocators.slurm_nodes import KeptNode, read_keeper, read_lost
from flowos.drivers.allocators.slurm_power import comments_words, read_comment
from flowos.engine.launch._capture import LineCapture
from flowos.engine.launch._prepared import own_variables, prepare
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._commands import answer, answered
from flowos.model import Ask, Exited, Launch, Pairs, Pool, SliceRefused

_HELLO = "flowos-keeper"
_FREE = b"free\n"
_KEEPER = (
    "end() {{ [ $SLURM_PROCID = 0 ] || sleep $1; exec scancel $SLURM_JOB_ID; }}; "
    'trap "end 0" TERM; '
    'while read -r name value; do [ "$name" = Cpus_allowed_list: ] && cpus=$value; done '
    "</proc/self/status; "
    'while read -r name value _; do [ "$name" = MemTotal: ] && kib=$value; done </proc/meminfo; '
    f'echo "{_HELLO} $SLURM_JOB_ID $SLURMD_NODENAME $SLURM_LAUNCH_NODE_IPADDR $cpus $kib '
    '${{SLURM_MEM_PER_NODE:-0}} ${{SLURM_GPUS_ON_NODE:-0}} $(cat {proof} 2>/dev/null)"; '
    'while read -r -t {silence} line; do [ "$line" = free ] && exit; done; end 5'
)
"""The first one ends the job at once; the others, should that node be lost, a little later.

A step that is ended leaves its job held, if srun dies meanwhile: so TERM ends the job too.
"""

SILENCE_SECONDS = 120.0
"""Of a driver that is stopped for longer (Ctrl-Z, its machine sleeps) the nodes are freed."""

_FAILED = "Slurm says that it failed"
_MAX_BYTES = 1 << 20
_ASK_AGAIN_SECONDS = 1.0
_FREE_SECONDS = 10.0
_RELEASE_SECONDS = 10.0
_STOP_SECONDS = 0.5


class Allocation:
    """Nodes of a job that runs until `free`. job: its number."""

    def __init__(
        self, heard: "_Heard", srun: RunningProcess, name: str, lifeline: int, beat_seconds: float
    ) -> None:
        self._heard, self._srun, self._name, self._lifeline = heard, srun, name, lifeline
        self._on_end: Callable[[str], None] = _ignore
        self._writing = threading.Lock()
        threading.Thread(target=self._beat, args=(beat_seconds,), daemon=True).start()

    @property
    def job(self) -> str:
        return self._heard.job

    @property
    def nodes(self) -> tuple[KeptNode, ...]:
        """By name."""
        return tuple(self._heard.nodes[name] for name in sorted(self._heard.nodes))

    def ended(self, seconds: float | None = 0.0) -> str | None:
        """Why it is over, once it is; None if it still is not after so many seconds."""
        try:
            self._srun.wait(seconds)
        except TimeoutError:
            return None
        return self._heard.complaint() or "its job ended"

    def free(self) -> None:
        """Give all nodes back. Twice is once."""
        self._on_end = _ignore
        self._heard.follow(_ignore_lost)
        self._write(_FREE)
        with self._writing:
            if self._lifeline >= 0:
                os.close(self._lifeline)
            self._lifeline = -1
        seconds = 0.0 if self._heard.lost else _FREE_SECONDS  # srun would wait for its keeper
        if self.ended(seconds) is None or self._srun.wait().end != Exited(0):
            with contextlib.suppress(SliceRefused):  # the controller is gone: keepers end the job
                self.cancel()

    def watch(self, on_lost: Callable[[str, str], None], on_end: Callable[[str], None]) -> None:
        """on_lost: gets the name of a node that is gone, and why. on_end: why it is over, once it
        is before it was freed."""
        self._on_end = on_end
        self._heard.follow(on_lost)
        why = self.ended()
        if why is not None and self._lifeline >= 0:
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
        until = time.monotonic() + _RELEASE_SECONDS
        while True:
            try:
                answered(keep_words(self.job, left), str)
            except SliceRefused as error:  # in a job's first seconds it may be too early for Slurm
                if time.monotonic() > until:
                    kept = ", ".join(sorted(names))
                    raise SliceRefused(f"{kept} held until all is freed: {error}") from None
                time.sleep(_ASK_AGAIN_SECONDS)
            else:
                self._heard.forget(names)
                return

    def cancel(self) -> None:
        """End it although its keepers do not answer, or before it has any."""
        with contextlib.suppress(SliceRefused):
            if self.job:  # srun would wait for tasks of nodes that are lost
                answer(cancel_words(self.job))
        self._srun.stop(_STOP_SECONDS)
        self._srun.wait()
        for job in answered(jobs_words(name=self._name), read_jobs):
            if job.phase != "over":
                answer(cancel_words(job.id))

    def _beat(self, seconds: float) -> None:
        """Tell keepers that we are there; if srun ends first, see to it that its job does."""
        while self.ended(seconds) is None:
            if not self._write(b"\n"):
                return
        if self._lifeline >= 0:
            self._on_end(self.ended() or "")
            with contextlib.suppress(SliceRefused):  # the controller is gone: keepers fall silent
                self.cancel()

    def _write(self, line: bytes) -> bool:
        with self._writing:
            if self._lifeline < 0:
                return False
            with contextlib.suppress(BlockingIOError, BrokenPipeError):  # srun hangs, or is gone
                os.write(self._lifeline, line)
        return True


def _ignore(why: str) -> None:
    """Default callback: does nothing."""


def _ignore_lost(name: str, why: str) -> None:
    """Default callback: does nothing."""


class _Heard:
    """What keepers and srun have said so far."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.nodes: dict[str, KeptNode] = {}
        self.job = ""
        self.waits = False
        self.lost: dict[str, str] = {}
        self._on_lost: Callable[[str, str], None] = _ignore_lost
        self._said: list[str] = []

    def keeper(self, line: str) -> None:
        words = line.split()
        with self.changed:
            if words[:1] == [_HELLO] and (kept := read_keeper(words[1:])) is not None:
                self.job, node = kept
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
            return read_complaint("\n".join(self._said)).text


def allocate(
    session: LaunchSession,
    pool: Pool,
    ask: Ask,
    on_waiting: Callable[[str], None],
    silence_seconds: float = SILENCE_SECONDS,
    proof: Path = Path("/dev/null"),
) -> Allocation:
    """Wait until the nodes are there. Raises SliceRefused if they cannot be had, in Slurm's words.

    proof: a file whose words each keeper says, if its node sees it.
    on_waiting: gets why it waits, in Slurm's word, as often as that changes. An exception of it,
    or an interrupt, leaves nothing held and nothing waiting.
    """
    name = f"flowos-{secrets.token_hex(8)}"
    heard = _Heard()
    script = _KEEPER.format(silence=silence_seconds, proof=shlex.quote(str(proof)))
    keeper = ("bash", "-c", script)
    words = hold_words(pool, ask, name, keeper)
    prepared = prepare(
        Launch(argv=words, variables=_variables()),
        runtime_named("bare"),
        session,
        captures=(LineCapture(_MAX_BYTES, heard.keeper), LineCapture(_MAX_BYTES, heard.srun)),
    )
    reader, lifeline = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(lifeline, False)
    try:
        srun = prepared.start(stdin=reader)
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(reader)
    allocation = Allocation(heard, srun, name, lifeline, silence_seconds / 8)
    try:
        _await_keepers(allocation, heard, name, ask.nodes, on_waiting)
    except BaseException:
        allocation.cancel()
        allocation.free()
        raise
    return allocation


def _await_keepers(
    allocation: Allocation,
    heard: _Heard,
    name: str,
    count: int,
    on_waiting: Callable[[str], None],
) -> None:
    reason = ""
    while len(heard.nodes) < count:
        if (why := allocation.ended()) is not None and len(heard.nodes) < count:
            raise SliceRefused(_comment(name) or why)
        if heard.waits and (found := _reason(name)) not in ("", reason):
            reason = found
            on_waiting(reason)
        with heard.changed:
            if len(heard.nodes) < count:
                heard.changed.wait(_ASK_AGAIN_SECONDS)


def _reason(name: str) -> str:
    jobs = answered(jobs_words(name=name), read_jobs)
    return next((job.reason for job in jobs if job.phase == "waiting"), "")


def _comment(name: str) -> str:
    """Why a node that Slurm powers up got no machine, which Slurm itself does not say."""
    with contextlib.suppress(SliceRefused):
        return answered(comments_words(name), read_comment)
    return ""


def _variables() -> Pairs:
    """Ours, but for those of a job around us: of them srun would take what is asked for."""
    return tuple((n, v) for n, v in own_variables() if n == "SLURM_CONF" or n[:6] != "SLURM_")
