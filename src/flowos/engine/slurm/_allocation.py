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
import threading
from collections.abc import Callable

from flowos.drivers import runtime_named
from flowos.drivers.allocators.slurm import (
    cancel_words,
    hold_words,
    jobs_words,
    read_complaint,
    read_jobs,
    read_waiting,
)
from flowos.engine.launch._capture import Capture
from flowos.engine.launch._prepared import own_variables, prepare
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._commands import answer, answered
from flowos.model import Ask, Exited, Launch, Pairs, Pool, SliceRefused

_HELLO = "flowos-keeper"
_FREE = b"free\n"
_KEEPER = (
    "end() {{ [ $SLURM_PROCID = 0 ] || sleep $1; exec scancel $SLURM_JOB_ID; }}; "
    f'trap "end 0" TERM; echo "{_HELLO} $SLURM_JOB_ID $SLURMD_NODENAME"; '
    'while read -r -t {silence} line; do [ "$line" = free ] && exit; done; end 5'
)
"""The first one ends the job at once; the others, should that node be lost, a little later.

A step that is ended leaves its job held, if srun dies meanwhile: so TERM ends the job too.
"""

SILENCE_SECONDS = 120.0
"""Of a driver that is stopped for longer (Ctrl-Z, its machine sleeps) the nodes are freed."""

_MAX_BYTES = 1 << 20
_ASK_AGAIN_SECONDS = 1.0
_FREE_SECONDS = 10.0


class Allocation:
    """Nodes of a job that runs until `free`. job: its number. nodes: their names."""

    def __init__(
        self, heard: "_Heard", srun: RunningProcess, name: str, lifeline: int, beat_seconds: float
    ) -> None:
        self._heard, self._srun, self._name, self._lifeline = heard, srun, name, lifeline
        self._writing = threading.Lock()
        threading.Thread(target=self._beat, args=(beat_seconds,), daemon=True).start()

    @property
    def job(self) -> str:
        return self._heard.job

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted(self._heard.nodes))

    def ended(self, seconds: float | None = 0.0) -> str | None:
        """Why it is over, once it is; None if it still is not after so many seconds."""
        try:
            self._srun.wait(seconds)
        except TimeoutError:
            return None
        return self._heard.complaint() or "its job ended"

    def free(self) -> None:
        """Give all nodes back. Twice is once."""
        self._write(_FREE)
        with self._writing:
            if self._lifeline >= 0:
                os.close(self._lifeline)
            self._lifeline = -1
        if self.ended(_FREE_SECONDS) is None or self._srun.wait().end != Exited(0):
            self.cancel()

    def cancel(self) -> None:
        """End it although its keepers do not answer, or before it has any."""
        self._srun.stop()
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
            with contextlib.suppress(SliceRefused):  # the controller is gone: keepers fall silent
                self.cancel()

    def _write(self, line: bytes) -> bool:
        with self._writing:
            if self._lifeline < 0:
                return False
            with contextlib.suppress(BlockingIOError, BrokenPipeError):  # srun hangs, or is gone
                os.write(self._lifeline, line)
        return True


class _Lines(Capture):
    """Hands on whole lines as they come."""

    __slots__ = ("_on_line", "_rest")

    def __init__(self, on_line: Callable[[str], None]) -> None:
        super().__init__(_MAX_BYTES)
        self._on_line = on_line
        self._rest = b""

    def add(self, data: bytes) -> None:
        super().add(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(line.decode(errors="replace"))


class _Heard:
    """What keepers and srun have said so far."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.nodes: set[str] = set()
        self.job = ""
        self.waits = False
        self._said: list[str] = []

    def keeper(self, line: str) -> None:
        words = line.split()
        with self.changed:
            if len(words) == 3 and words[0] == _HELLO:
                self.job = words[1]
                self.nodes.add(words[2])
            self.changed.notify_all()

    def srun(self, line: str) -> None:
        said = read_waiting(line)
        with self.changed:
            if said is None:
                self._said.append(line)
            else:
                self.waits = said[0] == "waiting"
            self.changed.notify_all()

    def complaint(self) -> str:
        with self.changed:
            return read_complaint("\n".join(self._said)).text


def allocate(
    session: LaunchSession,
    pool: Pool,
    ask: Ask,
    on_waiting: Callable[[str], None],
    silence_seconds: float = SILENCE_SECONDS,
) -> Allocation:
    """Wait until the nodes are there. Raises SliceRefused if they cannot be had, in Slurm's words.

    on_waiting: gets why it waits, in Slurm's word, as often as that changes. An exception of it,
    or an interrupt, leaves nothing held and nothing waiting.
    """
    name = f"flowos-{secrets.token_hex(8)}"
    heard = _Heard()
    keeper = ("bash", "-c", _KEEPER.format(silence=silence_seconds))
    words = hold_words(pool, ask, name, keeper)
    prepared = prepare(
        Launch(argv=words, variables=_variables()),
        runtime_named("bare"),
        session,
        captures=(_Lines(heard.keeper), _Lines(heard.srun)),
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
            raise SliceRefused(why)
        if heard.waits and (found := _reason(name)) not in ("", reason):
            reason = found
            on_waiting(reason)
        with heard.changed:
            if len(heard.nodes) < count:
                heard.changed.wait(_ASK_AGAIN_SECONDS)


def _reason(name: str) -> str:
    jobs = answered(jobs_words(name=name), read_jobs)
    return next((job.reason for job in jobs if job.phase == "waiting"), "")


def _variables() -> Pairs:
    """Ours, but for those of a job around us: of them srun would take what is asked for."""
    return tuple((n, v) for n, v in own_variables() if n == "SLURM_CONF" or n[:6] != "SLURM_")
