"""A launch in the foreground: it has this process's standard streams and its terminal.

In a terminal the command joins our process group: it is the job that the person's shell started,
together with us and what else stands in the same pipe. Ctrl-C, Ctrl-Z, fg, a new window size and
the right to read the keyboard come from the terminal itself; an interactive shell takes the
terminal and gives it back. The runtime between us runs in a group of its own, as some die of a
Ctrl-C that was typed for the command.

Without a terminal it has a session of its own, and signals that we get are handed on. So it is for
ranks too: their mpirun gets the signal and hands it on; where it would not hand on that very
signal, and at once, we send it to the ranks.
"""

import contextlib
import os
import signal
import termios
import threading
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from subprocess import Popen
from types import FrameType
from typing import Any

from flowos._dataclasses import dataclass
from flowos.engine.launch._capture import Pipes
from flowos.engine.launch._orphans import Started, unfinished
from flowos.engine.launch._prepared import (
    PreparedLaunch,
    hold_container,
    open_lifeline,
    write_folder,
)
from flowos.engine.launch._running import RunningProcess
from flowos.model import LaunchFailed, Outcome

HANDED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_TICK_SECONDS = 0.005
_PATIENCE = 2
"""So many signals wait for a start that does not come; one more ends it."""


def run_in_foreground(prepared: PreparedLaunch) -> Outcome:
    """Start it and wait for its end, handing on signals; stdout and stderr are not captured.

    To be called in the main thread. LaunchFailed, with the folder gone, if it cannot be started.
    """
    assert threading.current_thread() is threading.main_thread()
    alone = prepared.launcher.name == "direct"
    inside = prepared.launch.terminal and prepared.runtime.traits.own_terminal
    with _Terminal.kept(requested=alone, inside=inside) as terminal, contextlib.ExitStack() as undo:
        undo.callback(prepared.discard)
        holders = hold_container(prepared, undo)
        spawn = _ready_to_spawn(prepared, terminal)
        undo.pop_all()
        post = _Post(_to_command if alone else partial(_to_gang, prepared.launcher.signals_owned))
        with _handlers(post.take):
            running = prepared.started_by(spawn, holders)
            post.open(running)
            return running.wait()


class _Post:
    """Hands signals on to the command. What comes before it has started waits for that; whoever
    asks often enough meanwhile is not kept waiting."""

    def __init__(self, hand_on: Callable[[RunningProcess, int], bool]) -> None:
        self._hand_on = hand_on
        self._running: RunningProcess | None = None
        self._early: list[int] = []

    def take(self, number: int, _: FrameType | None = None) -> None:
        if self._running is not None and self._hand_on(self._running, number):
            return
        self._early.append(number)
        if self._running is None:
            return
        if len(self._early) == 1:
            threading.Thread(target=self._deliver, args=(self._running,), daemon=True).start()
        if len(self._early) > _PATIENCE:
            self._running.stop()

    def open(self, running: RunningProcess) -> None:
        early, self._early = self._early, []
        self._running = running
        for number in early:
            self.take(number)

    def _deliver(self, running: RunningProcess) -> None:
        while self._early and not running.done:
            time.sleep(_TICK_SECONDS)
            while self._early and self._hand_on(running, self._early[0]):
                self._early.pop(0)


def _to_command(running: RunningProcess, number: int) -> bool:
    """By flowos-init, unless its number means another process here. False: it has not started."""
    try:
        started = Started((running.folder / "started.0").read_bytes())
    except OSError:
        return running.done
    return _sent(started.init if started.here else running.pid, number)


def _to_gang(signals_owned: Collection[str], running: RunningProcess, number: int) -> bool:
    """mpirun first: it then expects that ranks end, and reports no failure."""
    _sent(running.pid, number)
    if signal.Signals(number).name in signals_owned:
        for _, started in unfinished(running.folder):
            if started.here:
                _sent(started.init, number)
        threading.Thread(target=_wake, args=(running,), daemon=True).start()
    return True


def _wake(mpirun: RunningProcess) -> None:
    """Open MPI's sleeps whole seconds while it ends its ranks. That a child ended wakes it; but if
    all had ended before it fell asleep, nothing would."""
    while not mpirun.done:
        if not any(unfinished(mpirun.folder)):
            _sent(mpirun.pid, signal.SIGCHLD)
        time.sleep(_TICK_SECONDS)


def _sent(pid: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    return True


@contextlib.contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """What our caller has us ignore (nohup) stays ignored."""
    before: dict[signal.Signals, Any] = {}
    try:
        for number in HANDED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def _ready_to_spawn(prepared: PreparedLaunch, terminal: "_Terminal | None") -> Callable[[], Any]:
    write_folder(prepared)
    argv, variables = prepared.command_line()
    group: dict[str, Any] = {"start_new_session": True}
    if terminal is not None:
        (prepared.folder / "group").write_text(str(os.getpgrp()))
        group = {} if prepared.runtime.traits.own_terminal else {"process_group": 0}

    def spawn() -> tuple["Popen[bytes]", Pipes]:
        lifeline = open_lifeline(prepared.folder)
        try:
            process = Popen(argv, cwd="/", env=variables, **group)
        except OSError as error:
            os.close(lifeline)
            raise LaunchFailed(f"cannot start '{argv[0]}': {error.strerror}") from error
        return process, Pipes(lifeline)

    return spawn


@dataclass(frozen=True)
class _Terminal:
    """The controlling terminal, as it was before the launch."""

    fd: int
    modes: list[Any]

    @classmethod
    @contextlib.contextmanager
    def kept(cls, *, requested: bool, inside: bool) -> Iterator["_Terminal | None"]:
        """The terminal whose jobs we may be one of; its modes are put back afterwards.

        None where there is none, none is requested, or its signals are not for us (nohup, a
        script's `&`). inside: the command has a terminal of its own, and gets the signals of that.
        """
        deaf = signal.SIG_IGN in map(signal.getsignal, (signal.SIGINT, signal.SIGHUP))
        fd = -1 if (deaf and not inside) or not requested else _open_terminal()
        if fd < 0:
            yield None
            return
        terminal = cls(fd, termios.tcgetattr(fd))
        ours = os.tcgetpgrp(fd) == os.getpgrp()
        try:
            yield terminal
        finally:
            if ours:
                terminal._restore()
            os.close(fd)

    def _restore(self) -> None:
        """Unless the person has gone on with something else meanwhile."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            if not _is_alive(os.tcgetpgrp(self.fd)):
                os.tcsetpgrp(self.fd, os.getpgrp())
            if os.tcgetpgrp(self.fd) == os.getpgrp():
                termios.tcsetattr(self.fd, termios.TCSADRAIN, self.modes)
        except (OSError, termios.error):  # the window is closed
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _open_terminal() -> int:
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return -1


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
