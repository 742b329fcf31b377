"""Nodes that Grid Engine holds for this process: a parallel job, and a keeper on each of its nodes.

The first keeper is the job itself; the others are its tasks, by `qrsh -inherit`. Each reads lines
from us through a qrsh: one every few seconds, those by which commands start there, and one that
frees the node. The end of its input says that this process is gone. Grid Engine ends a job whose
first qrsh is gone; where neither is to be seen, as when a login node fails, keepers end by silence.
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flowos.drivers._allocators import KeptNode, node_names
from flowos.drivers.allocators.sge import (
    cancel_words,
    hold_words,
    job_name,
    read_complaint,
    read_reason,
    reason_words,
    start_words,
)
from flowos.engine._provider import NEVER, CancelToken
from flowos.engine._resource_manager import ResourceManager
from flowos.engine.launch._prepared import own_variables
from flowos.engine.launch._session import LaunchSession
from flowos.engine.sge._kept_node import NodeKeeper, keeper_words
from flowos.engine.sge._node_commands import NodeCommands
from flowos.model import Argv, Ask, Exited, Pool, SliceRefused, counted

GRID_ENGINE = ResourceManager("Grid Engine", read_complaint, "sge_qmaster runs")

SILENCE_SECONDS = 120.0
"""Of a driver that is stopped for longer (Ctrl-Z, its machine sleeps) the nodes are freed. A keeper
that has not answered for as long is lost with its node, which Grid Engine itself never notices."""

_BEATS = 8
_TICK_SECONDS = 0.5
_ASK_AGAIN_SECONDS = 1.0
_MISSED = 2
"""Of questions in a row, to which Grid Engine answers that a job it knew does not exist."""
_TASK_SECONDS = 1.0
_FREE_SECONDS = 10.0


class SgeAllocation:
    """See `HeldJob`. Nodes of a job that runs until `free`. name: of its job.

    hold: what its first keeper is started by; keeper: the others.
    """

    is_divisible = False

    def __init__(
        self, session: LaunchSession, pool: Pool, name: str, hold: Argv, keeper: Argv
    ) -> None:
        self.name, self._session, self._keeper, self._cores = name, session, keeper, pool.cores
        self._changed = threading.Condition()
        self._keepers: dict[str, NodeKeeper] = {}
        self._lost: dict[str, str] = {}
        self._on_lost: Callable[[str, str], None] = _ignore_lost
        self._on_end: Callable[[str], None] = _ignore
        self._first = NodeKeeper(session, hold, own_variables(), self._changed)

    @property
    def job(self) -> str:
        return str(self._first.greeting.get("job", ""))

    @property
    def held_job(self) -> str:
        return self.job

    @property
    def first(self) -> str:
        """The node that runs the job's script, also once it is lost."""
        return next(iter(self._keepers))

    @property
    def nodes(self) -> tuple[KeptNode, ...]:
        """That of the first keeper is the first one."""
        with self._changed:
            there = [(n, k) for n, k in self._keepers.items() if n not in self._lost]
        return tuple(keeper.kept(name, self._cores) for name, keeper in there)

    def commands(self, node: str) -> NodeCommands:
        """What starts commands on a node of it."""
        return self._keepers[node].commands

    def ended(self, seconds: float | None = 0.0) -> str | None:
        try:
            self._first.qrsh.wait(seconds)
        except TimeoutError:
            return None
        lost = self._lost.get(next(iter(self._keepers), ""))
        return lost or self._first.complaint() or "its job ended"

    def free(self) -> None:
        self._on_end, self._on_lost = _ignore, _ignore_lost
        tasks = [k for n, k in self._keepers.items() if k is not self._first]
        for keeper in tasks:
            keeper.lifeline.free()
        until = time.monotonic() + _TASK_SECONDS
        for keeper in tasks:
            with contextlib.suppress(TimeoutError):  # its node is lost
                keeper.qrsh.wait(max(0.0, until - time.monotonic()))
        self._first.lifeline.free()
        seconds = 0.0 if self._lost else _FREE_SECONDS
        try:
            if self.ended(seconds) is None or self._first.qrsh.wait().end != Exited(0):
                self.cancel()
        finally:
            for keeper in (self._first, *tasks):
                keeper.stop()

    def cancel(self) -> None:
        """End it although its keepers do not answer, or before it has one."""
        self._first.qrsh.stop()
        self._first.qrsh.wait()
        _cancel(self.name)

    def release(self, names: set[str]) -> None:
        """All at once: Grid Engine changes no job that runs."""
        if not {node.name for node in self.nodes} - names:
            self.free()

    def watch(self, on_lost: Callable[[str, str], None], on_end: Callable[[str], None]) -> None:
        with self._changed:
            self._on_lost, self._on_end = on_lost, on_end
            before = tuple(self._lost.items())
        for name, why in before:
            on_lost(name, why)
        why_over = self.ended()
        if why_over is not None and self._first.lifeline.is_open:
            on_end(why_over)

    def lose(self, name: str, why: str) -> None:
        with self._changed:
            if name in self._lost:
                return
            self._lost[name] = why
        keeper = self._keepers[name]
        keeper.stop() if keeper is not self._first else keeper.commands.close()
        self._on_lost(name, why)

    def await_keepers(
        self, count: int, on_waiting: Callable[[str], None], cancel: CancelToken
    ) -> None:
        """Until each of so many nodes has one. Raises SliceRefused if they will not.

        An exception of `on_waiting`, or an interrupt, leaves nothing held and nothing waiting.
        """
        try:
            with cancel.wakes(self._changed):
                self._await_first(on_waiting, cancel)
                self._await_others(count, cancel)
        except BaseException:
            self.cancel()
            self.free()
            raise

    def _await_first(self, on_waiting: Callable[[str], None], cancel: CancelToken) -> None:
        reason, known, missed = "", False, 0
        while not self._is_first_there(cancel):
            found = _reason(self.name)
            known, missed = known or found is not None, missed + 1 if found is None else 0
            if known and missed >= _MISSED:  # its qrsh would find out after half a minute
                raise SliceRefused(self._first.complaint() or "its job was deleted as it waited")
            if found and found != reason:
                reason = found
                on_waiting(reason)

    def _is_first_there(self, cancel: CancelToken) -> bool:
        """Waits for it for a while. Raises SliceRefused if it will not come."""
        cancel.check()
        with self._changed:
            self._changed.wait_for(lambda: self._first.has_spoken, _ASK_AGAIN_SECONDS)
        why = self.ended(_ASK_AGAIN_SECONDS if self._first.complaint() else 0.0)
        if why is not None and not self._first.greeting:
            raise SliceRefused(why)
        return bool(self._first.greeting)

    def _await_others(self, count: int, cancel: CancelToken) -> None:
        names = node_names("Grid Engine", self._first.greeting["nodes"])
        if len(names) != count:
            asked = counted(count, "node")
            raise SliceRefused(f"{asked} asked for, Grid Engine gave slots of {len(names)}")
        variables = (*own_variables(), ("JOB_ID", self.job), ("SGE_TASK_ID", "undefined"))
        self._keepers[names[0]] = self._first
        for name in names[1:]:
            words = start_words(name, self._keeper)
            self._keepers[name] = NodeKeeper(self._session, words, variables, self._changed)
        for name in names[1:]:
            self._await_task(name, self._keepers[name], cancel)

    def _await_task(self, name: str, keeper: NodeKeeper, cancel: CancelToken) -> None:
        while not keeper.greeting:
            cancel.check()
            if (why := self.ended()) is not None:
                raise SliceRefused(why)
            if keeper.qrsh.done and not keeper.greeting:
                raise SliceRefused(f"node {name}: {keeper.complaint() or 'its keeper ended'}")
            with self._changed:
                self._changed.wait_for(lambda: keeper.greeting, _TICK_SECONDS)

    def keep(self, silence_seconds: float) -> None:
        """Say to keepers that we are there; if one or its qrsh is lost, see to it that others know.

        Beats that were not answered are counted, not seconds: we may have been stopped ourselves.
        """
        due = 0.0
        while self.ended(min(_TICK_SECONDS, silence_seconds / _BEATS)) is None:
            beats = time.monotonic() >= due
            if beats:
                due = time.monotonic() + silence_seconds / _BEATS
            for name, keeper in self._keepers.items():
                if name not in self._lost:
                    self._look_at(name, keeper, beats=beats)
            if not self._first.lifeline.is_open or self._is_first_lost():
                break
        if self._first.lifeline.is_open:
            with contextlib.suppress(SliceRefused):  # it ends by itself
                self.cancel()
            with contextlib.suppress(SliceRefused):  # as above, with what gives its nodes back
                self._on_end(self.ended() or "")

    def _look_at(self, name: str, keeper: NodeKeeper, *, beats: bool) -> None:
        if keeper.qrsh.done and keeper is not self._first and keeper.lifeline.is_open:
            self.lose(name, keeper.complaint() or "its keeper ended")
        elif beats and keeper.beat() >= _BEATS:
            self.lose(name, f"node {name} does not answer")

    def _is_first_lost(self) -> bool:
        return self.first in self._lost


def allocate(  # noqa: PLR0913 - the last three by keyword
    session: LaunchSession,
    pool: Pool,
    ask: Ask,
    on_waiting: Callable[[str], None],
    silence_seconds: float = SILENCE_SECONDS,
    proof: Path = Path("/dev/null"),
    cancel: CancelToken = NEVER,
    held: tuple[str, ...] = (),
) -> SgeAllocation:
    """Wait until the nodes are there. Raises SliceRefused if they cannot be had.

    pool: as `whole_nodes` gives it. on_waiting: gets why it waits, in Grid Engine's words, as often
    as that changes; an exception of it, or an interrupt, leaves nothing held and nothing waiting.
    proof: a file whose words each keeper says, if its node sees it. held: nodes not to be had.
    """
    name = job_name(ask.id or secrets.token_hex(8))
    keeper = keeper_words(proof, silence_seconds)
    hold = hold_words(pool, ask, name, keeper, held)
    allocation = SgeAllocation(session, pool, name, hold, keeper)
    allocation.await_keepers(ask.nodes, on_waiting, cancel)
    threading.Thread(target=allocation.keep, args=(silence_seconds,), daemon=True).start()
    return allocation


def cancel_sge_jobs(slice: str) -> None:
    """End what is held, and what waits. Raises SliceRefused if Grid Engine does not."""
    _cancel(f"{job_name(slice)}*")


def _cancel(names: str) -> None:
    said = GRID_ENGINE.answer(cancel_words(names))
    complaint = read_complaint(said.says or said.stdout.decode(errors="replace"))
    if said.code != 0 and complaint.kind != "gone":
        raise SliceRefused(f"qdel: {complaint.text or f'exit code {said.code}'}")


def _ignore(why: str) -> None:
    """Default callback: does nothing."""


def _ignore_lost(name: str, why: str) -> None:
    """Default callback: does nothing."""


def _reason(name: str) -> str | None:
    """Why it waits, as far as Grid Engine says so. None of a job that has just come or is gone."""
    said = GRID_ENGINE.answer(reason_words(name))
    answer = said.stdout.decode(errors="replace")
    gone = said.code != 0 and read_complaint(said.says or answer).kind == "gone"
    return None if gone else read_reason(answer)
