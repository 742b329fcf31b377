"""What tasks in workers print, on to this process's sys.stdout and sys.stderr."""

import codecs
import contextlib
import os
import select
import sys
import threading
from typing import TextIO

_CHUNK_BYTES = 1 << 16


class Output:
    """Two pipes that all workers of a slice write to, and a thread that sleeps until they do.

    `drain` brings out all that was written before it: what a task printed is seen before its run
    returns.
    """

    def __init__(self) -> None:
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._readers, self.writers = zip(_pipe(), _pipe(), strict=True)
        self._decoders = [_decoder(), _decoder()]
        self._written = select.epoll()  # may be asked by several threads at once
        for fd in self._readers:
            self._written.register(fd, select.EPOLLIN)
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._pump, name="flowos-output", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        with self._lock:
            while not self._closed and self._written.poll(0):
                self._bring()

    def close(self) -> None:
        """Bring out the rest, then end. The workers are gone."""
        self.drain()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        os.eventfd_write(self._bell, 1)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._written.close()
        for fd in (*self._readers, *self.writers, self._bell):
            os.close(fd)

    def _pump(self) -> None:
        wait = select.poll()
        for fd in (*self._readers, self._bell):
            wait.register(fd, select.POLLIN)
        while not self._closed:
            wait.poll()
            with self._lock:
                if not self._closed:
                    self._bring()

    def _bring(self) -> None:
        targets = (sys.stdout, sys.stderr)
        for fd, decoder, target in zip(self._readers, self._decoders, targets, strict=True):
            with contextlib.suppress(BlockingIOError):
                _write(target, decoder.decode(os.read(fd, _CHUNK_BYTES)))


def _write(target: TextIO | None, text: str) -> None:
    """A closed or broken stream loses what is printed, as it does for the engine's own prints."""
    if target is None or not text:
        return
    with contextlib.suppress(OSError, ValueError):
        target.write(text)
        target.flush()


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reader, False)
    return reader, writer
