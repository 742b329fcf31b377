"""What connects us with a process, and what it prints, kept up to a bound."""

from collections.abc import Callable
from subprocess import Popen

from flowos._dataclasses import dataclass


@dataclass(frozen=True)
class Pipes:
    """Our ends: the FIFO whose closing ends the launch, and what comes out.

    -1: it does not come out to us, but where our own goes.
    """

    lifeline: int
    stdout: int = -1
    stderr: int = -1


Spawn = Callable[[], tuple["Popen[bytes]", Pipes]]


class Capture:
    """Keeps the first and the last half of `max_bytes`, and says how much it left out between.

    Holds at most 1.5 times `max_bytes`. whole: nothing may be left out, for it is data; the launch
    is ended once the capture is `broken`.
    """

    __slots__ = ("_half", "_head", "_size", "_tail", "_whole", "max_bytes")

    def __init__(self, max_bytes: int, *, whole: bool = False) -> None:
        self.max_bytes = max_bytes
        self._whole = whole
        self._half = max(1, max_bytes // 2)
        self._size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self._size += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def broken(self) -> bool:
        return self._whole and self._size > self.max_bytes

    def value(self) -> bytes:
        tail = self._tail[-self._half :]
        left_out = self._size - len(self._head) - len(tail)
        if not left_out:
            return b"".join((self._head, tail))
        note = f"\n[flowos: {left_out} bytes left out here]\n".encode()
        return bytes(self._head + note + tail)


class LineCapture(Capture):
    """Hands on whole lines, without the white space at their end, as they come."""

    __slots__ = ("_on_line", "_rest")

    def __init__(self, max_bytes: int, on_line: Callable[[str], None]) -> None:
        super().__init__(max_bytes)
        self._on_line = on_line
        self._rest = b""

    def add(self, data: bytes) -> None:
        super().add(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(line.decode(errors="replace").rstrip())
