"""What connects us with a process of a language: two FIFOs, a memory file, and the pipes that it
prints to.

r_process.R or julia_process.jl is at the other end. A message: kind (1 teach, 2 call), whether its
values lie in the memory file, count of numbers, those numbers, the values. An answer: status (0
good, 1 an error, 2 a result that its port does not take), whether the values lie in the file, count
of numbers, bytes of values here, the numbers, the values. All but the values is float64.
"""

import codecs
import mmap
import os
import select
import struct
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

__flowos_frames__ = True
HERE_BYTES = 49152
"""Values of fewer bytes go with their message: a FIFO of 64 KiB holds all of it."""
KEPT_BYTES = 256 << 20
"""A longer memory file is given back after its call."""
_HEAD = struct.Struct("=3d")
_ANSWER = struct.Struct("=4d")
_CHUNK_BYTES = 1 << 16
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class LanguageAnswer:
    """status: 0 if it is good. values: until the next message."""

    __slots__ = ("numbers", "status", "values")

    def __init__(self, status: int, numbers: Sequence[float], values: memoryview) -> None:
        self.status, self.numbers, self.values = status, numbers, values


class LanguageChannel:
    """One message at a time, on any thread. folder: for the FIFOs.

    writers: what it prints to, for its start; `opened` closes them here. words: its arguments.
    """

    def __init__(self, folder: Path) -> None:
        asks, answers = folder / "asks", folder / "answers"
        self._fds: list[int] = []
        self._map: mmap.mmap | None = None
        self._room = memoryview(bytearray(HERE_BYTES))
        self._used = 0
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2)]
        try:
            self._memory = self._keep(os.memfd_create("flowos-values"))
            for path in (asks, answers):
                os.mkfifo(path, 0o600)
            # for reading too: else there has to be a reader yet
            self._asks = self._keep(os.open(asks, os.O_RDWR | _FLAGS))
            self._answers = self._keep(os.open(answers, os.O_RDONLY | _FLAGS))
            pairs = [os.pipe2(_FLAGS) for _ in range(2)]
        except BaseException:
            self.close()
            raise
        self._printed = [self._keep(reader) for reader, _ in pairs]
        self.writers = [self._keep(writer) for _, writer in pairs]
        for writer in self.writers:
            os.set_blocking(writer, True)
        self.words = (str(asks), str(answers), f"/proc/{os.getpid()}/fd/{self._memory}")
        self._wait = select.poll()
        for fd in (self._answers, *self._printed):
            self._wait.register(fd, select.POLLIN)

    def _keep(self, fd: int) -> int:
        self._fds.append(fd)
        return fd

    def opened(self, pid: int) -> None:
        """It was started. pid: a process that ends with it."""
        for writer in self.writers:
            self._fds.remove(writer)
            os.close(writer)
        self.writers = []
        try:
            end = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended and was reaped: a pipe without a writer says so
            end, writer = os.pipe()
            os.close(writer)
        self._wait.register(self._keep(end), select.POLLIN | select.POLLHUP)

    @property
    def is_open(self) -> bool:
        """Whether the process is there; asked between two messages."""
        return all(fd in self._printed for fd, _ in self._wait.poll(0))

    def room(self, size: int) -> memoryview:
        """Where the values of the next message are to be written: so many bytes."""
        self._used = size
        if size <= HERE_BYTES:
            return self._room[:size]
        return self._mapped(size)[:size]

    def send(self, kind: int, numbers: Sequence[float]) -> None:
        """A message, whose values are in its `room`."""
        apart = self._used > HERE_BYTES
        words = [_HEAD.pack(kind, apart, len(numbers)), array("d", numbers).tobytes()]
        message = b"".join(words if apart else [*words, self._room[: self._used]])
        rest = memoryview(message)[self._write(message) :]
        if rest:
            self._write_on(rest)

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._asks, data)
        except BlockingIOError:
            return 0

    def _write_on(self, rest: memoryview) -> None:
        """As the process reads it. If it ends meanwhile, `receive` says so."""
        self._wait.register(self._asks, select.POLLOUT)
        try:
            while rest:
                for fd, _ in self._wait.poll():
                    if fd == self._asks:
                        rest = rest[self._write(rest) :]
                    elif fd in self._printed:
                        self._pass_on(fd)
                    else:
                        return
        finally:
            self._wait.unregister(self._asks)

    def receive(self) -> LanguageAnswer:
        """Once all printed before it is on its way. Raises EOFError if the process has ended."""
        answered = bytearray()
        while (answer := self._complete(answered)) is None:
            for fd, _ in self._wait.poll():
                if fd == self._answers:
                    self._take(answered)
                elif fd in self._printed:
                    self._pass_on(fd)
                else:
                    self._take(answered)  # it may have answered before it ended
                    if self._complete(answered) is None:
                        self.pass_on()
                        raise EOFError
        self.pass_on()
        return answer

    def _take(self, answered: bytearray) -> None:
        """Raises EOFError once it has closed its end."""
        with suppress(BlockingIOError):
            data = os.read(self._answers, _CHUNK_BYTES)
            if not data:
                self.pass_on()
                raise EOFError
            answered += data

    def _complete(self, answered: bytearray) -> LanguageAnswer | None:
        if len(answered) < _ANSWER.size:
            return None
        status, apart, count, here = map(int, _ANSWER.unpack_from(answered))
        begin = _ANSWER.size + 8 * count
        if len(answered) < begin + here:
            return None
        numbers = array("d", bytes(answered[_ANSWER.size : begin]))
        values = self._mapped(0) if apart else memoryview(answered)[begin:]
        return LanguageAnswer(status, numbers, values)

    def pass_on(self) -> None:
        """All that it has printed by now."""
        for fd in self._printed:
            while self._pass_on(fd):
                pass

    def _pass_on(self, fd: int) -> bool:
        """Whether there was something."""
        at = self._printed.index(fd)
        try:
            data = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            with suppress(KeyError):
                self._wait.unregister(fd)
        _print((sys.stdout, sys.stderr)[at], self._decoders[at].decode(data))
        return bool(data)

    def _mapped(self, size: int) -> memoryview:
        """The memory file, of so many bytes at least."""
        there = os.fstat(self._memory).st_size
        if there < size:
            os.ftruncate(self._memory, size)
            there = size
        if self._map is None or len(self._map) < there:
            self._map = mmap.mmap(self._memory, there)
        return memoryview(self._map)

    def give_back(self) -> None:
        """After a call, whose values nothing uses any more."""
        if self._map is not None and len(self._map) > KEPT_BYTES:
            self._map = None
            os.ftruncate(self._memory, 0)

    def close(self) -> None:
        """Twice is once."""
        self._map = None
        while self._fds:
            os.close(self._fds.pop())


def _print(target: TextIO | None, text: str) -> None:
    """A closed or broken stream loses what is printed."""
    if target is not None and text:
        with suppress(OSError, ValueError):
            target.write(text)
            target.flush()
