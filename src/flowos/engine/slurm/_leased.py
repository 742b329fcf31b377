"""Nodes with a lease, as programs see them: they are held by a process of their own."""

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from flowos._dataclasses import replace
from flowos.drivers._allocators import KeptNode
from flowos.drivers.allocators.slurm import cancel_words
from flowos.engine._requests import request
from flowos.engine.launch._detached import start_detached, started_at
from flowos.engine.launch._private_dirs import ON_DISK, own_folder
from flowos.engine.slurm._commands import answer
from flowos.engine.slurm._lease_holder import ASKED, REQUESTS, LeaseState
from flowos.model import Ask, Pool, SliceRefused, from_plain, to_plain

_BEAT_SECONDS = 1.0
_ANSWER_SECONDS, _FREE_SECONDS = 5.0, 20.0
_START_SECONDS, _NEW_SECONDS = 0.02, 60.0
_GONE = "the process that holds its nodes is gone"


class LeasedAllocation:
    """As `Allocation`; when it is left, its nodes stay held until the lease is over."""

    is_divisible = True

    def __init__(self, folder: Path, state: LeaseState) -> None:
        self._folder, self._state = folder, state
        self._on_lost: Callable[[str, str], None] = _ignore_two
        self._on_end: Callable[[str], None] = _ignore
        self._lost: dict[str, str] = dict(state.lost)
        self._open = True
        self._over = threading.Event()
        self._lock = threading.Lock()
        seconds = min(_BEAT_SECONDS, state.lease_seconds / 4)
        threading.Thread(target=self._beat, args=(seconds,), daemon=True).start()

    @property
    def state(self) -> LeaseState:
        """As it was heard last."""
        return self._state

    @property
    def job(self) -> str:
        return self._state.step.partition(".")[0]

    @property
    def held_job(self) -> str:
        return self.job

    @property
    def nodes(self) -> tuple[KeptNode, ...]:
        return tuple(node for node in self._state.nodes if node.name not in self._lost)

    def ended(self, seconds: float | None = 0.0) -> str | None:
        """Why it is over, once it is; None if that is not heard within so many seconds."""
        if seconds != 0.0:
            self._over.wait(seconds)
        return self._state.reason if self._over.is_set() else None

    def watch(self, on_lost: Callable[[str, str], None], on_end: Callable[[str], None]) -> None:
        with self._lock:
            self._on_lost, self._on_end = on_lost, on_end
            before = tuple(self._lost.items())
        for name, why in before:
            on_lost(name, why)

    def lose(self, name: str, why: str) -> None:
        with self._lock:
            if name in self._lost:
                return
            self._lost[name] = why
        self._on_lost(name, why)
        with contextlib.suppress(OSError):
            _ask(self._folder, "lose", name, why)

    def release(self, names: set[str]) -> None:
        if not self._open:
            return
        if not {node.name for node in self.nodes} - names:
            self.free()
            return
        with contextlib.suppress(OSError):
            _ask(self._folder, "release", *names)

    def free(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            done = _ask(self._folder, "free", seconds=_FREE_SECONDS)
        except OSError:
            return  # with the process its keepers end
        if done is None:
            with contextlib.suppress(SliceRefused):
                answer(cancel_words(self.job))

    def leave(self) -> None:
        """From now on the lease is not renewed."""
        self._open = False
        with contextlib.suppress(OSError):
            _ask(self._folder, "renew")

    def _beat(self, seconds: float) -> None:
        """Renew the lease, and hear what became of the nodes."""
        while self._open:
            try:
                state = _ask(self._folder, "renew")
            except OSError:
                state = LeaseState(phase="over", ask=self._state.ask, reason=_GONE)
            if state is not None and not self._heard(state):
                return
            time.sleep(seconds)

    def _heard(self, state: LeaseState) -> bool:
        """Whether it goes on."""
        if state.phase == "over":
            self._state = replace(self._state, reason=state.reason)
            self._over.set()
            if self._open:
                self._on_end(state.reason)
            return False
        for name, why in state.lost:
            self.lose(name, why)
        self._state = state
        return True


def allocate_leased(
    pool: Pool, ask: Ask, on_waiting: Callable[[str], None], proof: Path
) -> LeasedAllocation:
    """As `allocate`, by a process that outlives this one."""
    folder = _folder_of(ask.id)
    _remove_left(folder.parent)
    folder.mkdir(mode=0o700)
    asked = {"pool": to_plain(pool), "ask": to_plain(ask), "proof": str(proof)}
    (folder / ASKED).write_text(json.dumps(asked))
    log = folder / "log"
    words = (sys.executable, "-m", "flowos.engine.slurm._lease_holder", str(folder))
    try:
        pid = start_detached(words, os.environ, log)
        while not (folder / REQUESTS).exists():
            if not started_at(pid):
                raise SliceRefused(f"the process that was to hold the nodes ended: {_last(log)}")
            time.sleep(_START_SECONDS)
        return LeasedAllocation(folder, _await_nodes(folder, on_waiting))
    except BaseException:
        with contextlib.suppress(OSError):
            _ask(folder, "free", seconds=_FREE_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _await_nodes(folder: Path, on_waiting: Callable[[str], None]) -> LeaseState:
    reason = ""
    while True:
        try:
            state = _ask(folder, "renew")
        except OSError:
            raise SliceRefused(_GONE) from None
        if state is None:
            continue
        if state.phase == "held":
            return state
        if state.phase == "over":
            raise SliceRefused(state.reason)
        if state.reason not in ("", reason):
            reason = state.reason
            on_waiting(reason)
        time.sleep(_START_SECONDS)


def attached(id: str) -> LeasedAllocation | str:
    """Nodes that a process of this machine holds under this id; else why there are none."""
    state = slurm_renewed(id)
    if isinstance(state, str):
        return state
    return LeasedAllocation(_folder_of(id), state)


def slurm_renewed(id: str, seconds: float | None = None) -> LeaseState | str:
    """What is held under this id, its lease renewed; else why nothing is. seconds: from now on."""
    words = () if seconds is None else (repr(seconds),)
    try:
        state = _ask(_folder_of(id), "renew", *words)
    except OSError:
        return "no process of this machine holds it with a lease"
    if state is None:
        return "the process that holds it does not answer"
    if state.phase != "held":
        return f"it is {state.phase}: {state.reason}"
    return state


def _folder_of(id: str) -> Path:
    """Raises EnvironmentRefused if where it lies is not safe."""
    return own_folder(ON_DISK, "leases") / id


def _remove_left(leases: Path) -> None:
    """What processes left that were killed."""
    for folder in leases.iterdir():
        with contextlib.suppress(FileNotFoundError):
            is_new = time.time() - folder.stat().st_mtime < _NEW_SECONDS
            if not is_new and not _is_read(folder / REQUESTS):
                shutil.rmtree(folder, ignore_errors=True)


def _is_read(fifo: Path) -> bool:
    """Whether a process answers there."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _ask(
    folder: Path, verb: str, *words: str, seconds: float = _ANSWER_SECONDS
) -> LeaseState | None:
    """None if it does not answer. Raises OSError if it is not there."""
    said = request(folder / REQUESTS, verb, *words, seconds=seconds)
    return from_plain(LeaseState, json.loads(said)) if said else None


def _last(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "it said nothing"


def _ignore(why: str) -> None:
    """Default callback: does nothing."""


def _ignore_two(name: str, why: str) -> None:
    """Default callback: does nothing."""
