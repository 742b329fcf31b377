"""The worker of a node that shares no kernel with the engine: the wire, and the start at its end.

Standard library only, as `worker.py`, next to which this file lies where it runs. The engine
imports it for `StreamChannel`, the wire of both ends.
"""

import mmap
import os
import pickle
import select
import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

HEAD = struct.Struct("<BHQ")
"""Of a frame: its kind, how many files follow, bytes of the body; then the bytes of each file."""
MESSAGE, STDOUT, STDERR = range(3)
BUFFER_BYTES = 1 << 16
CHUNK_BYTES = 1 << 20
AWAKE_SECONDS = 2e-4
"""How long a reader looks for a message before it sleeps: a hop with TLS takes about 80 us."""
MAX_POLL_MILLISECONDS = 2**31 - 1
NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME: the clocks of two machines differ."""
ANSWERED = ("teach", "run")
"""Messages that a worker answers, see `worker.Worker.serve`."""
PAGE_FD, READER_FDS = 3, (4, 5)
"""See flowos-init's relay.h."""
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2500),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""A node that is gone is noticed after 3 s, or after 2.5 s while something is on the way to it."""

OnOutput = Callable[[int, bytes], None]


def ignore_output(stream: int, data: bytes) -> None:
    """Default callback: does nothing."""


def context_of(pem: str, *, server: bool) -> ssl.SSLContext:
    """TLS between holders of this file: both ends show the certificate in it, and trust no other.

    pem: path of a file with a certificate and its key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    context.load_cert_chain(pem)
    context.load_verify_locations(pem)
    return context


class StreamChannel:
    """Messages over a TLS connection, each with files if wished: a memory file crosses as bytes.

    Raises ConnectionError or EOFError if the other end is gone.
    on_output: gets what the other end sends on of what is printed there, while one is awaited.
    """

    def __init__(self, sock: ssl.SSLSocket, on_output: OnOutput = ignore_output) -> None:
        for option in KEEPALIVE:
            sock.setsockopt(*option)
        sock.settimeout(None)
        self.sock = sock
        self.on_output = on_output
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = self._end = 0

    def send(self, message: object, files: Sequence[tuple[int, int]] = ()) -> None:
        """files: (descriptor, bytes) of each."""
        self._send(MESSAGE, pickle.dumps(message, 5), files)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[int]]:
        """The next message and its files. Raises TimeoutError if none comes within `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self._meet_awake()
            head = bytearray(HEAD.size)
            self._fill(memoryview(head), until)
            kind, count, length = HEAD.unpack(head)
            sizes = bytearray(8 * count)
            self._fill(memoryview(sizes), until)
            body = bytearray(length)
            self._fill(memoryview(body), until)
            if kind == MESSAGE:
                files = [self._file(size, until) for (size,) in struct.iter_unpack("<Q", sizes)]
                return pickle.loads(body), files
            self.on_output(kind, bytes(body))

    def close(self) -> None:
        self.sock.close()

    def _send(self, kind: int, body: bytes, files: Sequence[tuple[int, int]] = ()) -> None:
        sizes = struct.pack(f"<{len(files)}Q", *(size for _, size in files))
        try:
            self.sock.sendall(HEAD.pack(kind, len(files), len(body)) + sizes + body)
            for fd, size in files:
                with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as file, memoryview(file) as view:
                    for start in range(0, size, CHUNK_BYTES):
                        self.sock.sendall(view[start : start + CHUNK_BYTES])
        except OSError as error:
            raise _gone(error) from error

    def _file(self, size: int, until: float | None) -> int:
        fd = os.memfd_create("flowos")
        try:
            os.ftruncate(fd, size)
            with mmap.mmap(fd, size) as file, memoryview(file) as view:
                self._fill(view, until)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _fill(self, view: memoryview, until: float | None) -> None:
        """Larger reads go past the buffer."""
        while view:
            if self._start < self._end:
                got = min(len(view), self._end - self._start)
                view[:got] = self._buffer[self._start : self._start + got]
                self._start += got
                view = view[got:]
            elif len(view) >= BUFFER_BYTES:
                view = view[self._read(view[:CHUNK_BYTES], until) :]
            else:
                self._start, self._end = 0, self._read(self._buffer, until)

    def _read(self, view: memoryview, until: float | None) -> int:
        if until is not None and not self.sock.pending():
            left = max(0.0, until - time.monotonic())
            if not self._poll.poll(min(left * 1000, MAX_POLL_MILLISECONDS)):
                raise TimeoutError
        try:
            got = self.sock.recv_into(view)
        except OSError as error:
            raise _gone(error) from error
        if not got:
            raise EOFError
        return got

    def _meet_awake(self) -> None:
        """To be woken takes longer than most messages are apart: look for one before we sleep."""
        if self._start < self._end or self.sock.pending():
            return
        asleep = time.perf_counter() + AWAKE_SECONDS
        while time.perf_counter() < asleep:
            if self._poll.poll(0):
                return
            os.sched_yield()


def _gone(error: OSError) -> Exception:
    """Of a connection that fails, whatever the network calls it (ETIMEDOUT, an alert of TLS)."""
    return ConnectionResetError(str(error))


class RelayingChannel(StreamChannel):
    """The worker's end: what is printed meanwhile goes along, and all of it before an answer.

    It is sent on only while the engine awaits an answer: OpenSSL lets no two threads use a
    connection, and two ends that both write may wait for each other.
    """

    def __init__(self, sock: ssl.SSLSocket, readers: Sequence[int] = READER_FDS) -> None:
        super().__init__(sock)
        self._readers = dict(zip(readers, (STDOUT, STDERR), strict=True))
        self._awaited = threading.Event()
        self._using = threading.Lock()
        threading.Thread(target=self._relay, daemon=True).start()

    def send(self, message: object, files: Sequence[tuple[int, int]] = ()) -> None:
        with self._using:
            self._awaited.clear()
            self._drain()
            super().send(message, files)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[int]]:
        message, files = super().receive(seconds)
        if isinstance(message, tuple) and message[0] in ANSWERED:
            self._awaited.set()
        return message, files

    def _relay(self) -> None:
        printed = select.poll()
        for fd in self._readers:
            printed.register(fd, select.POLLIN)
        while True:
            printed.poll()
            self._awaited.wait()
            with self._using:
                if self._awaited.is_set():
                    try:
                        self._drain()
                    except OSError:  # the engine is gone, or we are
                        return

    def _drain(self) -> None:
        """One read takes all that a pipe holds."""
        for fd, kind in self._readers.items():
            try:
                self._send(kind, os.read(fd, BUFFER_BYTES))
            except BlockingIOError:
                continue


def main(host: str, port: str, pem: str) -> None:
    """Connect to the engine and serve it."""
    worker = import_module("worker")
    signal.signal(signal.SIGINT, lambda *_: None)  # the engine ends us
    plain = socket.create_connection((host, int(port)))
    sock = context_of(pem, server=False).wrap_socket(plain)
    os.register_at_fork(after_in_child=sock.close)
    channel = RelayingChannel(sock)
    try:
        channel.send(sys.version_info[:2])
        hello, _ = channel.receive()
        worker.Worker(channel, hello, PAGE_FD).serve()
    except (EOFError, ConnectionError):
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
