"""Launches side by side of which one works at a time: what is slow for longer is so for all.

A program takes part by flowos_turns.h (of probes/programs): each of its ranks connects to the
socket that FLOWOS_TURNS names, sends a byte when it waits, and works from the byte it gets to the
next that it sends, or to its end. No socket leads into a guest: one that is booted works from its
start to its end while the others wait.
"""

import select
import socket
from collections.abc import Sequence
from contextlib import ExitStack

from flowos._dataclasses import replace
from flowos.engine.launch._prepared import PreparedLaunch
from flowos.engine.launch._running import RunningProcess
from flowos.model import LaunchFailed, Outcome
from flowos.plan import drawn

_TICK_MILLISECONDS = 20


def run_interleaved(prepared: Sequence[PreparedLaunch], seed: str) -> list[Outcome | LaunchFailed]:
    """Start all, give them turns until each has ended, and tell how, in their order.

    The first turn is given when all that could be started wait for one. A B C is followed by C B A,
    so that drift cancels, then by an order drawn anew from `seed`, so that no rhythm of the machine
    sides with one of them. A limit in seconds is of a launch's own turns: it is multiplied by how
    many there are. An interrupt ends them all.
    """
    with ExitStack() as undo:
        seats = [_seated(each, len(prepared), undo) for each in prepared]
        going = [seat for seat in seats if isinstance(seat, _Seat) and seat.waits()]
        number = 0
        while going:
            for seat in _order(going, seed, number):
                if not seat.works():
                    going.remove(seat)
            number += 1
        return [seat.running.wait() if isinstance(seat, _Seat) else seat for seat in seats]


def _seated(prepared: PreparedLaunch, count: int, undo: ExitStack) -> "_Seat | LaunchFailed":
    try:
        return _Seat(prepared, count, undo)
    except LaunchFailed as error:
        return error


def _order(going: "Sequence[_Seat]", seed: str, number: int) -> "Sequence[_Seat]":
    order = drawn(going, seed, number // 2)
    return order[::-1] if number % 2 else order


class _Seat:
    """A launch, and the connections of its ranks."""

    def __init__(self, prepared: PreparedLaunch, count: int, undo: ExitStack) -> None:
        """Raises LaunchFailed if it does not start; its folder is gone then. `undo` ends it."""
        self._ranks: list[socket.socket] = []
        path = str(prepared.folder / "turns")
        self._listener = undo.enter_context(socket.socket(socket.AF_UNIX))
        try:
            self._listener.bind(path)
            self._listener.listen(prepared.launch.ranks)
        except OSError as error:
            prepared.discard()
            raise LaunchFailed(f"turns cannot be given at {path}: {error.strerror}") from error
        launch, limit = prepared.launch, prepared.launch.limit_seconds
        turns = () if launch.env.boot else (("FLOWOS_TURNS", path),)
        launch = replace(
            launch,
            variables=(*launch.variables, *turns),
            limit_seconds=limit and limit * count,
        )
        self.running: RunningProcess = replace(prepared, launch=launch).start()
        undo.callback(self._end)

    def works(self) -> bool:
        """Give it a turn; whether it waits for another. False: it has ended."""
        for rank in self._ranks:
            try:
                rank.send(b"\0")
            except ConnectionError:
                return self._gone()
        return self.waits()

    def waits(self) -> bool:
        """Wait until all its ranks have come and wait for a turn, True, or until it has ended."""
        while len(self._ranks) < self.running.launch.ranks:
            if not self._hears(self._listener):
                return self._gone()
            self._ranks.append(self._listener.accept()[0])
        return all(map(self._says, self._ranks)) or self._gone()

    def _says(self, rank: socket.socket) -> bool:
        try:
            return self._hears(rank) and rank.recv(1) != b""
        except ConnectionError:
            return False

    def _hears(self, sock: socket.socket) -> bool:
        """Whether something came; False once the launch has ended."""
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        while not poll.poll(_TICK_MILLISECONDS):
            if self.running.done:
                return False
        return True

    def _gone(self) -> bool:
        """False, once it has ended: ranks that still wait see that no turns come."""
        self._close()
        self.running.wait()
        return False

    def _close(self) -> None:
        for rank in self._ranks:
            rank.close()
        self._ranks.clear()

    def _end(self) -> None:
        self._close()
        if not self.running.done:
            self.running.stop()
            self.running.wait()
