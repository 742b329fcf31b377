"""The process that holds nodes which have a lease: it outlives the program that asked for them.

`python -m flowos.engine.slurm._lease_holder FOLDER`, in a session of its own. It holds them as a
program does, by keepers; those end with it. Programs of this user on this machine renew the lease
and learn what it knows through a FIFO in the folder. Once no program has for the lease's seconds,
the nodes are freed, or no longer waited for, and the folder is removed.
"""

import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.drivers._allocators import KeptNode
from flowos.engine._requests import RequestListener
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._allocation import Allocation, allocate
from flowos.model import Ask, Pairs, Pool, SliceRefused, from_plain, to_plain

ASKED, REQUESTS = "asked.json", "requests.fifo"
_READ_SECONDS, _TICK_SECONDS = 5.0, 0.02
"""So long the reason of an end waits to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """What the process knows. lost: nodes, and why. left_seconds: of what was asked for."""

    phase: Literal["waiting", "held", "over"]
    ask: Ask
    reason: str = ""
    step: str = ""
    nodes: tuple[KeptNode, ...] = ()
    lost: Pairs = ()
    left_seconds: float | None = None
    lease_seconds: float = 0.0


class LeaseHolder:
    """folder: with what is asked for."""

    def __init__(self, folder: Path) -> None:
        asked = json.loads((folder / ASKED).read_bytes())
        self._pool, self._ask = from_plain(Pool, asked["pool"]), from_plain(Ask, asked["ask"])
        self._proof = Path(asked["proof"])
        self._changed = threading.Condition()
        self._allocation: Allocation | None = None
        self._reason, self._over, self._read = "", False, False
        self._lost: dict[str, str] = {}
        self._seconds = self._ask.lease_seconds or 0.0
        self._due = time.monotonic() + self._seconds
        self._limit = self._pool.seconds_of(self._ask)
        self._end: float | None = None

    def hold(self) -> None:
        """Hold the nodes until they are freed, lost, or the lease is over."""
        try:
            self._allocation = allocate(
                LaunchSession(), self._pool, self._ask, self._waits, proof=self._proof
            )
        except SliceRefused as error:
            self._ended(str(error))
        except KeyboardInterrupt:  # `_stop`
            self._ended("its lease ended while it waited")
        else:
            if self._limit is not None:
                self._end = time.monotonic() + self._limit
            self._allocation.watch(self._loses, self._ended)
        with self._changed:
            self._changed.wait_for(lambda: self._over)
            self._changed.wait_for(lambda: self._read, _READ_SECONDS)

    def keep_time(self) -> None:
        """End it when it is due."""
        while not self._over:
            ends = [self._due] if self._end is None else [self._due, self._end]
            left = min(ends) - time.monotonic()
            if left <= 0:
                self._stop(f"after {self._seconds:g} s without its program")
                return
            with self._changed:
                self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def answer(self, verb: str, words: list[str]) -> str:
        """Of `renew [SECONDS]`, `lose NODE WHY`, `release NODE...`, `free`: a `LeaseState`."""
        with self._changed:
            if verb == "renew":
                self._seconds = float(words[0]) if words else self._seconds
                self._due = time.monotonic() + self._seconds
                self._changed.notify_all()
        if verb == "free":
            self._stop("it was freed")
        if verb == "lose" and self._allocation is not None:
            self._allocation.lose(*words)
        if verb == "release" and self._allocation is not None:
            self._allocation.release(set(words))
        with self._changed:
            self._read = self._over
            self._changed.notify_all()
            return json.dumps(to_plain(self._state()))

    def _state(self) -> LeaseState:
        held = self._allocation
        return LeaseState(
            phase="over" if self._over else "waiting" if held is None else "held",
            ask=self._ask,
            reason=self._reason,
            step=held.step if held else "",
            nodes=held.nodes if held else (),
            lost=tuple(self._lost.items()),
            left_seconds=None if self._end is None else max(0.0, self._end - time.monotonic()),
            lease_seconds=self._seconds,
        )

    def _waits(self, reason: str) -> None:
        self._reason = reason

    def _loses(self, name: str, why: str) -> None:
        self._lost[name] = why

    def _stop(self, why: str) -> None:
        if self._allocation is None:
            os.kill(os.getpid(), signal.SIGINT)  # it is waited for
        else:
            self._allocation.free()
            self._ended(why)

    def _ended(self, why: str) -> None:
        with self._changed:
            self._over, self._reason = True, why
            self._changed.notify_all()


def main(folder: Path) -> None:
    holder = LeaseHolder(folder)
    listener = RequestListener(folder / REQUESTS, holder.answer)
    threading.Thread(target=holder.keep_time, daemon=True).start()
    try:
        holder.hold()
        until = time.monotonic() + _READ_SECONDS
        while not listener.is_settled() and time.monotonic() < until:
            time.sleep(_TICK_SECONDS)
    finally:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
