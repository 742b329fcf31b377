"""Signals that end a command in order: Ctrl-C, SIGTERM, and SIGHUP of a terminal that is closed.

One that comes just as the main thread begins to wait is raised at once all the same. CPython looks
for signals before it lets go of its lock and then waits: what comes in between, or while another
thread runs, is seen when the wait is over, after an hour of `time.sleep(3600)`.

One that is raised where Python ignores exceptions, in a `__del__` (that of `Popen` runs after each
program) or a callback of the garbage collector, is raised again after that.
"""

import _thread
import os
import signal
import sys
import threading
import time

_NUDGE = signal.SIGURG
"""It ends a wait of the main thread, which then looks for signals; nothing else hears it."""
_AFTER_SECONDS = (0.02, 0.1, 0.5)
_heard = [signal.SIGINT]
"""The last that ended a command of this process."""


def raise_on_signals() -> None:
    """From now on SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does; not if ignored, as by
    nohup. Called by the main thread."""
    _heard[:] = [signal.SIGINT]
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def interrupt_main() -> None:
    """End the command from another thread."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def how_ended() -> tuple[int, str]:
    """The exit code of a command that a signal ended, as shells give it, and a word for it."""
    number = _heard[-1]
    word = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    return 128 + number, word


def _interrupt(number: int, _: object) -> None:
    _heard[:] = [signal.Signals(number)]
    raise KeyboardInterrupt


def wake_for_interrupts() -> None:
    """From now on each signal that has a handler is followed by nudges of the main thread.

    Called by the main thread.
    """
    came, comes = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(comes, False)
    signal.signal(_NUDGE, lambda *_: None)
    signal.set_wakeup_fd(comes, warn_on_full_buffer=False)
    threading.Thread(target=_nudge, args=(came, threading.get_ident()), daemon=True).start()
    sys.unraisablehook = _raise_ignored


def _nudge(came: int, main: int) -> None:
    while numbers := os.read(came, 1):
        if numbers[0] != _NUDGE:
            for seconds in _AFTER_SECONDS:
                time.sleep(seconds)
                signal.pthread_kill(main, _NUDGE)


def _raise_ignored(ignored: "sys.UnraisableHookArgs") -> None:
    main = threading.main_thread()
    if ignored.exc_type is KeyboardInterrupt and main.is_alive():  # else it is at its exit already
        _thread.start_new_thread(_raise_again, (main.ident or 0, _heard[-1]))
    else:
        sys.__unraisablehook__(ignored)


def _raise_again(main: int, number: int) -> None:
    time.sleep(_AFTER_SECONDS[0])
    signal.pthread_kill(main, number)
