"""The streams of a card behind Xilinx's XDMA: opened for this program alone, both ways at once.

Its driver has no poll, and waits in read or write as long as it was loaded to; pread and readv are
none of its calls.
"""

import errno
import io
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from flowos.engine.bodies._one_owner import have_alone
from flowos.model import DeviceError

__flowos_frames__ = True
_STEP_BYTES = 1 << 22
"""Of one read or write: its driver sets up 2,048 pages at a time."""
_STALE_SECONDS = 0.2
_MAX_MS = (1 << 31) - 1
_ERESTARTSYS = 512
_TIME_OVER = {errno.ETIMEDOUT, _ERESTARTSYS}
"""The second is what older drivers say."""
_GONE = {errno.EPIPE, errno.ENODEV, errno.ENXIO}
_NO_RIGHT = (
    'there is no right to open it: a rule of udev gives it, KERNEL=="xdma*", GROUP="users", '
    'MODE="0660"'
)
_NO_CARD = "there is no such card; is its driver loaded (modprobe xdma)?"
_WHY = {
    errno.ENOENT: _NO_CARD,
    errno.ENXIO: _NO_CARD,
    errno.ENODEV: _NO_CARD,
    errno.EACCES: _NO_RIGHT,
    errno.EBUSY: "another program has it open",
}


def xdma_cards(folder: Path = Path("/dev")) -> list[tuple[str, str]]:
    """The port of each card there, and why it cannot be opened, or ""."""
    found = []
    for to in sorted(folder.glob("xdma*_h2c_0")):
        port = str(to).removesuffix("_h2c_0")
        ways = ((to, os.W_OK), (Path(f"{port}_c2h_0"), os.R_OK))
        may = all(os.access(path, way, effective_ids=True) for path, way in ways)
        found.append((port, "" if may else _NO_RIGHT))
    return found


class XdmaStreams:
    """Use it in a `with`. port: such as /dev/xdma0, of which it takes channel 0 each way.

    Raises DeviceError if they cannot be opened, or another program has them.
    """

    def __init__(self, port: str) -> None:
        self._port = port
        self._to = _opened(f"{port}_h2c_0", os.O_WRONLY)
        try:
            have_alone(self._to, port)
            self._back = io.FileIO(_opened(f"{port}_c2h_0", os.O_RDONLY))
        except BaseException:
            os.close(self._to)
            raise

    def __enter__(self) -> "XdmaStreams":
        return self

    def __exit__(self, *_: object) -> None:
        self._back.close()
        os.close(self._to)

    def exchange(self, data: memoryview, answer: memoryview, seconds: float) -> None:
        """Writes all of `data` while it fills `answer`.

        Raises DeviceError if the card is gone, or nothing moves for so long.
        """
        one = _Exchange(self._to, self._back, data, answer, seconds)
        try:
            one.run()
        except OSError as error:
            raise DeviceError(f"{self._port}: {one.words(error)}") from None
        finally:
            one.close()

    def read_away(self) -> None:
        """What is left of calls that were cut short."""
        rest = bytearray(_STEP_BYTES)
        with suppress(OSError):
            while _is_ready(self._back.fileno(), select.POLLIN, _STALE_SECONDS):
                if not self._back.readinto(rest):
                    return


class _Exchange:
    """Bytes both ways, of which a thread writes. seconds: in which something has to move."""

    def __init__(
        self, to: int, back: io.FileIO, data: memoryview, answer: memoryview, seconds: float
    ) -> None:
        self._to, self._back, self._seconds = to, back, seconds
        self._data, self._answer = data, answer
        self._written = self._read = 0
        self._stop = os.eventfd(0)
        self._failures: list[BaseException] = []

    def close(self) -> None:
        os.close(self._stop)

    def run(self) -> None:
        """Raises the first failure of either way: OSError if the other end is gone or silent."""
        writer = threading.Thread(target=self._try, args=(self._write_all,))
        writer.start()
        self._try(self._read_all)
        writer.join()
        if self._failures:
            raise self._failures[0]

    def words(self, error: OSError) -> str:
        """What went wrong, for the person."""
        if error.errno in _GONE:
            return "the card is gone; is its driver still loaded?"
        took = f"it took {self._written} of {len(self._data)} bytes"
        progress = f"{took}, and gave {self._read} of {len(self._answer)}"
        if error.errno is None:
            return f"the card said nothing for {self._seconds:.1f} s: {progress}"
        if error.errno in _TIME_OVER:
            return f"its driver waited no longer (h2c_timeout, c2h_timeout of xdma): {progress}"
        return f"{error.strerror}: {progress}"

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # an interrupt too: the other way is stopped before it
            self._failures.append(error)
            os.eventfd_write(self._stop, 1)

    def _write_all(self) -> None:
        while self._written < len(self._data):
            self._wait(self._to, select.POLLOUT)
            step = self._data[self._written : self._written + _STEP_BYTES]
            with suppress(BlockingIOError):
                self._written += os.write(self._to, step)

    def _read_all(self) -> None:
        while self._read < len(self._answer):
            self._wait(self._back.fileno(), select.POLLIN)
            count = self._back.readinto(self._answer[self._read : self._read + _STEP_BYTES])
            if count == 0:
                raise OSError(errno.ENODEV, "the end of its stream")
            self._read += count or 0

    def _wait(self, fd: int, event: int) -> None:
        if not _is_ready(fd, event, self._seconds, self._stop):
            raise TimeoutError


def _is_ready(fd: int, event: int, seconds: float, stop: int = -1) -> bool:
    """Whether it is within so long. Raises OSError if `stop` was written to."""
    poll = select.poll()
    poll.register(fd, event)
    if stop >= 0:
        poll.register(stop, select.POLLIN)
    ready = dict(poll.poll(min(1000 * seconds, _MAX_MS)))
    if stop in ready:
        raise InterruptedError
    return bool(ready)


def _opened(path: str, flags: int) -> int:
    """Without waiting for another end, should it be a FIFO."""
    try:
        return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(f"{path}: {_WHY.get(error.errno or 0, error.strerror)}") from None
