"""An interrupt that comes just as the main thread begins to wait is raised at once all the same.

CPython looks for signals before it lets go of its lock and then waits: what comes in between, or
while another thread runs, is seen when the wait is over, after an hour of `time.sleep(3600)`.
"""

import os
import signal
import threading
import time

_NUDGE = signal.SIGURG
"""It ends a wait of the main thread, which then looks for signals; nothing else hears it."""
_AFTER_SECONDS = (0.02, 0.1, 0.5)


def wake_for_interrupts() -> None:
    """From now on each signal that has a handler is followed by nudges of the main thread.

    Called by the main thread.
    """
    came, comes = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(comes, False)
    signal.signal(_NUDGE, lambda *_: None)
    signal.set_wakeup_fd(comes, warn_on_full_buffer=False)
    threading.Thread(target=_nudge, args=(came, threading.get_ident()), daemon=True).start()


def _nudge(came: int, main: int) -> None:
    while numbers := os.read(came, 1):
        if numbers[0] != _NUDGE:
            for seconds in _AFTER_SECONDS:
                time.sleep(seconds)
                signal.pthread_kill(main, _NUDGE)
