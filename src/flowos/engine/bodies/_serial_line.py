"""A serial line: opened for this program alone, raw bytes both ways at once."""

import errno
import os
import select
import termios
from contextlib import suppress

from flowos.engine.bodies._one_owner import have_alone
from flowos.model import DeviceError

__flowos_frames__ = True
BAUDS = {
    int(name[1:]): value
    for name, value in vars(termios).items()
    if name[:1] == "B" and name[1:].isdigit() and name != "B0"
}
"""Rates that the kernel has, and its number of each."""
_READ_BYTES = 1 << 16
_MAX_MS = (1 << 31) - 1
_WHY = {
    errno.ENOENT: "there is no such port; is it plugged in?",
    errno.EACCES: "there is no right to open it: usermod -aG dialout USER, and log in again",
    errno.EBUSY: "another program has it open",
}


class SerialLine:
    """Use it in a `with`. Raises DeviceError if it cannot be opened, or another program has it."""

    def __init__(self, port: str, baud: int) -> None:
        self._port = port
        try:
            self._fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            why = _WHY.get(error.errno or 0, error.strerror)
            raise DeviceError(f"{port}: {why}") from None
        try:
            have_alone(self._fd, port)
            self._make_raw(BAUDS[baud])
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> "SerialLine":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def exchange(self, data: bytearray, seconds: float) -> bytes:
        """Writes of `data` what can be, which is then gone from it, and reads what has come.

        Raises TimeoutError if neither can be for so long, DeviceError if the line was lost.
        """
        poll = select.poll()
        poll.register(self._fd, select.POLLIN | (select.POLLOUT if data else 0))
        ready = poll.poll(min(1000 * seconds, _MAX_MS))
        if not ready:
            raise TimeoutError
        try:
            if ready[0][1] & select.POLLOUT:
                with suppress(BlockingIOError):
                    del data[: os.write(self._fd, data)]
            if not ready[0][1] & ~select.POLLOUT:
                return b""
            found = os.read(self._fd, _READ_BYTES)
        except OSError:
            found = b""
        if not found:
            raise DeviceError(f"{self._port}: the line was lost; is it still plugged in?")
        return found

    def _make_raw(self, speed: int) -> None:
        try:
            *_, characters = termios.tcgetattr(self._fd)
            flags = termios.CS8 | termios.CREAD | termios.CLOCAL
            termios.tcsetattr(self._fd, termios.TCSANOW, [0, 0, flags, 0, speed, speed, characters])
            termios.tcflush(self._fd, termios.TCIOFLUSH)
        except termios.error as error:
            raise DeviceError(f"{self._port}: it is no serial line ({error.args[-1]})") from None
