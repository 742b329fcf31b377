"""The FUSE server of an image; once it has ended, the next launch has the image mounted anew."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from flowos.engine.launch._end_reasons import lives
from flowos.engine.launch._orphans import unmount
from flowos.engine.launch._running import RunningProcess
from flowos.model import FlowosError

_ENDING_SECONDS = 10.0


class ImageServer:
    """Methods may be called from any thread, but for the watch's.

    at: the folder that it shows. mount: starts it; it shows the image when that returns.
    """

    def __init__(self, at: Path, mount: Callable[[], RunningProcess]) -> None:
        self._at, self._mount = at, mount
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._running = mount()

    def running(self) -> RunningProcess:
        """The launch that shows the image; one that has ended if it cannot be mounted any more.

        What enters the image then fails, and says of which server that is.
        """
        if os.getpid() != self._owner:  # after fork(): it is the parent's
            return self._running
        with self._lock:
            if not lives(self._running.folder) and self._ends():
                self._mount_anew()
            return self._running

    def end(self) -> None:
        """Nothing enters the image any more."""
        with self._lock:
            end(self._running)

    def _ends(self) -> bool:
        """Its launch is over a little later than its command; or that could not be looked at."""
        try:
            self._running.wait(_ENDING_SECONDS)
        except TimeoutError:
            return False
        return True

    def _mount_anew(self) -> None:
        unmount(self._at)
        with suppress(FlowosError, OSError):  # the next launch tries again
            self._running = self._mount()


def end(running: RunningProcess) -> None:
    running.stop()
    running.wait()
