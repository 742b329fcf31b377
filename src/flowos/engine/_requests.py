"""Requests of other programs of this user to this one: lines through a FIFO, answers in files.

A program that nothing asks only has a thread that sleeps in the kernel. FIFOs are of one machine,
also on a network file system: a program elsewhere finds no reader.
"""

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_MAX_LINE_BYTES = 4096
"""So much is written to a FIFO at once, or not at all."""
_POLL_SECONDS = 0.005
_LAST_SECONDS = 5.0
"""So long `close` waits for answers that are under way."""

RequestHandler = Callable[[str, list[str]], str]


class RequestListener:
    """Answers requests until `close`. answer: gets a verb and words; each in a thread of its own.

    Raises OSError if the FIFO cannot be made.
    """

    def __init__(self, fifo: Path, answer: RequestHandler) -> None:
        self._fifo, self._answer = fifo, answer
        self._pending: dict[str, threading.Thread] = {}
        part = fifo.with_suffix(".part")
        os.mkfifo(part, 0o600)
        self._fd = os.open(part, os.O_RDWR | os.O_CLOEXEC)  # its own writer: it never ends
        part.rename(fifo)  # once it is there it is read
        self._listening = threading.Thread(target=self._listen, args=(self._fd,), daemon=True)
        self._listening.start()

    def is_settled(self) -> bool:
        """Whether every answer was read."""
        return not self._pending and not any(
            each != self._fifo for each in self._fifo.parent.glob(f"{self._fifo.stem}.*")
        )

    def close(self, *, remove: bool = True) -> None:
        """Answer what was asked before, and nothing else.

        remove: not in a forked child, which has no listening thread, but its descriptor.
        """
        if self._fd >= 0 and remove:
            self._fifo.unlink(missing_ok=True)
            self._answer_the_last()
        elif self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _answer_the_last(self) -> None:
        until = time.monotonic() + _LAST_SECONDS
        os.write(self._fd, b"\n")  # after all that was asked
        self._listening.join(until - time.monotonic())
        for answering in tuple(self._pending.values()):
            answering.join(max(0.0, until - time.monotonic()))

    def _listen(self, fd: int) -> None:
        rest = b""
        while True:
            *lines, rest = (rest + os.read(fd, _MAX_LINE_BYTES)).split(b"\n")
            for line in map(bytes.decode, lines):
                if not line:
                    return
                answering = threading.Thread(target=self._do, args=(line,), daemon=True)
                self._pending[line] = answering
                answering.start()

    def _do(self, line: str) -> None:
        token, verb, *words = line.split("\t")
        place = _answer_of(self._fifo, token)
        part = place.with_suffix(f".{token}-part")
        try:
            said = self._answer(verb, words)
            with suppress(OSError):
                part.write_text(said)
                part.rename(place)
        finally:
            self._pending.pop(line, None)


def request(fifo: Path, verb: str, *words: str, seconds: float) -> str | None:
    """What the program of this FIFO answers; None if it does not within so many seconds, or ends.

    Raises OSError if no program listens.
    """
    token = os.urandom(4).hex()
    place = _answer_of(fifo, token)
    fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(fd, "\t".join((token, verb, *words)).encode() + b"\n")
        return _answer_at(place, fd, time.monotonic() + seconds)
    finally:
        os.close(fd)


def _answer_at(place: Path, fd: int, until: float) -> str | None:
    no_reader = select.poll()
    no_reader.register(fd, select.POLLERR)
    while time.monotonic() < until:
        ended = no_reader.poll(_POLL_SECONDS * 1000)  # before the look: it may have answered last
        with suppress(FileNotFoundError):
            said = place.read_text()
            place.unlink()
            return said
        if ended:
            return None
    return None


def _answer_of(fifo: Path, token: str) -> Path:
    return fifo.with_suffix(f".{token}")
