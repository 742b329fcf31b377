"""A serial line: opened for this program alone, raw bytes both ways at once."""

import errno
import fcntl
import os
import select
import termios
import time
from contextlib import suppress
from pathlib import Path

from flowos.model import DeviceError

__flowos_frames__ = True
BAUDS = {
    int(name[1:]): value
    for name, value in vars(termios).items()
    if name[:1] == "B" and name[1:].isdigit() and name != "B0"
}
"""Rates that the kernel has, and its number of each."""
_OTHERS_SECONDS = 10.0
_READ_BYTES = 1 << 16
_WORDS = 80
_WHY = {
    errno.ENOENT: "there is no such port; is it plugged in?",
    errno.EACCES: "there is no right to open it: usermod -aG dialout USER, and log in again",
    errno.EBUSY: "another program has it open",
}
_NEXT, _OURS = 0, 1
"""Bytes of the port that programs of ours lock, which the kernel takes back: the first that
waits, which thus is before the one that had it last, and the one that has it."""


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
            self._have_alone()
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
        ready = poll.poll(1000 * seconds)
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

    def _have_alone(self) -> None:
        """Programs of ours take turns, one call each, as long as those take; others are not waited
        for."""
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, _NEXT)
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, _OURS)
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _NEXT)
        until = time.monotonic() + _OTHERS_SECONDS
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    by = f"{_owner(self._fd) or 'another program'} has it open"
                    raise DeviceError(f"{self._port}: {by}") from None
                time.sleep(0.005)

    def _make_raw(self, speed: int) -> None:
        try:
            *_, characters = termios.tcgetattr(self._fd)
            flags = termios.CS8 | termios.CREAD | termios.CLOCAL
            termios.tcsetattr(self._fd, termios.TCSANOW, [0, 0, flags, 0, speed, speed, characters])
            termios.tcflush(self._fd, termios.TCIOFLUSH)
        except termios.error as error:
            raise DeviceError(f"{self._port}: it is no serial line ({error.args[-1]})") from None


def _owner(fd: int) -> str:
    """The process that has its lock; "" if that is not seen."""
    facts = os.fstat(fd)
    device = facts.st_dev
    file = f"{os.major(device):02x}:{os.minor(device):02x}:{facts.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if "FLOCK" in words and file in words:
                pid = words[words.index(file) - 1]
                program = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                return f"process {pid} ({program.decode(errors='replace').strip()[:_WORDS]})"
    return ""
