"""Nodes that Grid Engine holds for this process: a parallel job whose one task is a keeper.

qrsh stays with the job and carries our lines to the keeper: one every few seconds, and one that
frees the nodes. The end of its input says that this process is gone. Grid Engine ends a job whose
qrsh is gone; where neither is to be seen, as when a login node fails, the keeper ends by silence.
Other processes start on the nodes by `qrsh -inherit`, as tasks of the same job.
"""

import contextlib
import os
import secrets
import threading
from collections.abc import Callable

from flowos.drivers import runtime_named
from flowos.drivers._allocators import Job, node_names
from flowos.drivers.allocators.sge import (
    cancel_words,
    hold_words,
    jobs_words,
    read_complaint,
    read_jobs,
    read_reason,
    reason_words,
)
from flowos.engine._resource_manager import ResourceManager
from flowos.engine.launch._capture import LineCapture
from flowos.engine.launch._prepared import own_variables, prepare
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._session import LaunchSession
from flowos.model import Ask, Exited, Launch, Lost, Pool, SliceRefused

GRID_ENGINE = ResourceManager("Grid Engine", read_complaint)

_HELLO = "flowos-keeper"
_FREE = b"free\n"
_KEEPER = (
    f'echo "{_HELLO} $JOB_ID" $(while read -r node rest; do echo "$node"; done <"$PE_HOSTFILE"); '
    'while read -r -t {silence} line; do [ "$line" = free ] && exit; echo .; done'
)

SILENCE_SECONDS = 120.0
"""Of a driver that is stopped for longer (Ctrl-Z, its machine sleeps) the nodes are freed. A keeper
that has not answered for as long is lost with its node, which Grid Engine itself never notices."""

_BEATS = 8
_MAX_BYTES = 1 << 20
_ASK_AGAIN_SECONDS = 1.0
_FREE_SECONDS = 10.0


class SgeAllocation:
    """Nodes of a job that runs until `free`. name: that of its job."""

    def __init__(self, heard: "_Heard", qrsh: RunningProcess, name: str, lifeline: int) -> None:
        self._heard, self._qrsh, self.name, self._lifeline = heard, qrsh, name, lifeline
        self._writing = threading.Lock()
        self._lost = ""

    @property
    def job(self) -> str:
        return self._heard.job

    @property
    def nodes(self) -> tuple[str, ...]:
        """The first one is that of the keeper."""
        return self._heard.nodes

    def ended(self, seconds: float | None = 0.0) -> str | None:
        """Why it is over, once it is; None if it still is not after so many seconds."""
        try:
            self._qrsh.wait(seconds)
        except TimeoutError:
            return None
        return self._lost or self._heard.complaint() or "its job ended"

    def free(self) -> None:
        """Give all nodes back. Twice is once."""
        self._write(_FREE)
        with self._writing:
            if self._lifeline >= 0:
                os.close(self._lifeline)
            self._lifeline = -1
        if self.ended(_FREE_SECONDS) is None or self._qrsh.wait().end != Exited(0):
            self.cancel()

    def cancel(self) -> None:
        """End it although its keeper does not answer, or before it has one."""
        self._qrsh.stop()
        self._qrsh.wait()
        said = GRID_ENGINE.answer(cancel_words(self.name))
        complaint = read_complaint(said.says or said.stdout.decode(errors="replace"))
        if said.code != 0 and complaint.kind != "gone":
            raise SliceRefused(f"qdel: {complaint.text}")

    def keep(self, silence_seconds: float) -> None:
        """Say to its keeper that we are there; if it or qrsh are lost, see to it that its job is.

        Beats that were not answered are counted, not seconds: we may have been stopped ourselves.
        """
        beats = 0
        while self.ended(silence_seconds / _BEATS) is None:
            if self._heard.unanswered(beats) >= _BEATS:
                self._lost = f"node {self.nodes[0]} does not answer"
                break
            if not self._write(b"\n"):
                return
            beats += 1
        if self._lifeline >= 0:
            with contextlib.suppress(SliceRefused):  # it ends by itself
                self.cancel()

    def _write(self, line: bytes) -> bool:
        with self._writing:
            if self._lifeline < 0:
                return False
            with contextlib.suppress(BlockingIOError, BrokenPipeError):  # qrsh hangs, or is gone
                os.write(self._lifeline, line)
        return True


class _Heard:
    """What the keeper and qrsh have said so far."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.nodes: tuple[str, ...] = ()
        self.job = ""
        self._said: list[str] = []
        self._answers = 0

    def keeper(self, line: str) -> None:
        hello, *words = line.split() or [""]
        with self._changed:
            if hello == _HELLO and len(words) > 1:
                self.job, *names = words
                self.nodes = node_names("Grid Engine", names)
            self._answers += line == "."
            self._changed.notify_all()

    def qrsh(self, line: str) -> None:
        with self._changed:
            self._said.append(line)
            self._changed.notify_all()

    def wait(self, seconds: float) -> float:
        """Until one of them says something. How long qrsh may then be waited for to end."""
        with self._changed:
            self._changed.wait_for(lambda: self.nodes or self._said, seconds)
            return seconds if self._said else 0.0

    def unanswered(self, beats: int) -> int:
        with self._changed:
            return beats - self._answers

    def complaint(self) -> str:
        with self._changed:
            return read_complaint("\n".join(self._said)).text


def allocate(
    session: LaunchSession,
    pool: Pool,
    ask: Ask,
    on_waiting: Callable[[str], None],
    silence_seconds: float = SILENCE_SECONDS,
) -> SgeAllocation:
    """Wait until the nodes are there. Raises SliceRefused if they cannot be had.

    pool: as `whole_nodes` gives it. on_waiting: gets why it waits, in Grid Engine's words, as often
    as that changes. An exception of it, or an interrupt, leaves nothing held and nothing waiting.
    """
    name = f"flowos-{secrets.token_hex(8)}"
    heard = _Heard()
    keeper = ("bash", "-c", _KEEPER.format(silence=silence_seconds))
    prepared = prepare(
        Launch(argv=hold_words(pool, ask, name, keeper), variables=own_variables()),
        runtime_named("bare"),
        session,
        captures=(LineCapture(_MAX_BYTES, heard.keeper), LineCapture(_MAX_BYTES, heard.qrsh)),
    )
    reader, lifeline = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(lifeline, False)
    try:
        qrsh = prepared.start(stdin=reader)
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(reader)
    allocation = SgeAllocation(heard, qrsh, name, lifeline)
    try:
        _await_keeper(allocation, heard, on_waiting)
        _check(allocation, ask)
    except BaseException:
        allocation.cancel()
        allocation.free()
        raise
    threading.Thread(target=allocation.keep, args=(silence_seconds,), daemon=True).start()
    return allocation


def find(job: str) -> Job | Lost:
    """A job of this person by number, with its nodes, whichever process holds it."""
    jobs = GRID_ENGINE.answered(jobs_words(job=job), read_jobs)
    found = next((each for each in jobs if each.id == job), None)
    return found or Lost(f"Grid Engine has no job {job} of yours that waits or runs")


def _await_keeper(
    allocation: SgeAllocation, heard: _Heard, on_waiting: Callable[[str], None]
) -> None:
    reason = ""
    while True:
        complains_for = heard.wait(_ASK_AGAIN_SECONDS)
        if heard.nodes:
            return
        if (why := allocation.ended(complains_for)) is not None and not heard.nodes:
            raise SliceRefused(why)
        if (found := _reason(allocation.name)) not in ("", reason):
            reason = found
            on_waiting(reason)


def _reason(name: str) -> str:
    """Grid Engine knows none of a job that has just come or gone."""
    said = GRID_ENGINE.answer(reason_words(name))
    return read_reason(said.stdout.decode(errors="replace"))


def _check(allocation: SgeAllocation, ask: Ask) -> None:
    if len(allocation.nodes) != ask.nodes:
        raise SliceRefused(
            f"{ask.nodes} nodes asked for, Grid Engine gave slots of {len(allocation.nodes)}"
        )
