"""The worker of a node that shares no kernel with the engine: the wire, and the start at its end.

Standard library only, as `worker.py`, next to which this file lies where it runs. The engine
imports it for `StreamChannel`, the wire of both ends.
"""

import contextlib
import math
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl  # 10 ms, for what TLS needs alone

HEAD = struct.Struct("<BHQ")
"""Of a frame: its kind, how many files follow, bytes of the body; then the bytes of each file."""
MESSAGE, STDOUT, STDERR = range(3)
BUFFER_BYTES, RECORD_BYTES = 1 << 17, 1 << 14
AWAKE_SECONDS = 2e-4
"""How long a reader looks for a message before it sleeps: a hop with TLS takes about 80 us."""
HUGE_PAGE_BYTES = 1 << 21
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
SentFile = tuple[int | mmap.mmap | Sequence[memoryview], int]
"""A descriptor or memory, and how many bytes of it; or all bytes of several views."""


def ignore_output(stream: int, data: bytes) -> None:
    """Default callback: does nothing."""


def context_of(pem: str, *, server: bool) -> "ssl.SSLContext":
    """TLS between holders of this file: both ends show the certificate in it, and trust no other.

    pem: path of a file with a certificate and its key.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    context.load_cert_chain(pem)
    context.load_verify_locations(pem)
    if server:
        context.num_tickets = 0  # nothing is resumed; unread, they would make an end a reset
    return context


class TlsStream:
    """TLS over a connection, which crosses to the kernel in chunks of several records of TLS.

    An `SSLSocket` does several calls for each record, of 16 kB at most. sock: its time-out is that
    of the handshake. Raises OSError if the other end lacks the certificate, and ConnectionError if
    it is gone, whatever the network calls that (ETIMEDOUT is no TimeoutError here).
    """

    def __init__(self, sock: socket.socket, context: "ssl.SSLContext", *, server: bool) -> None:
        import ssl

        self.sock, self._unready = sock, ssl.SSLWantReadError
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._came, self._goes, server_side=server)
        self._chunk = memoryview(bytearray(BUFFER_BYTES))
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._shake_hands()
        for option in KEEPALIVE:
            sock.setsockopt(*option)
        sock.settimeout(None)

    def _shake_hands(self) -> None:
        seconds = self.sock.gettimeout()
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        while True:
            try:
                self._tls.do_handshake()
            except self._unready:
                self._flush()
                if seconds is not None:
                    self.sock.settimeout(max(1e-3, until - time.monotonic()))
                if not self._take_in():
                    raise ConnectionResetError("the other end left the handshake") from None
            except OSError:
                self._flush()  # it says why
                raise
            else:
                self._flush()
                return

    def write(self, view: memoryview | bytes) -> None:
        """All of it."""
        if len(view) <= RECORD_BYTES:
            self._tls.write(view)
            self._flush()
            return
        whole = memoryview(view)
        for start in range(0, len(whole), BUFFER_BYTES):
            part = whole[start : start + BUFFER_BYTES]
            while part:
                part = part[self._tls.write(part) :]
            self._flush()

    def read_into(self, view: memoryview, until: float | None) -> int:
        """Some bytes, 0 at the end. Raises TimeoutError if none come until then.

        view: holds at least a record, so that none is left in OpenSSL.
        """
        while True:
            if self._came.pending and (got := self._decrypted(view)) is not None:
                return got
            if until is not None:
                left = max(0.0, until - time.monotonic())
                if not self._poll.poll(min(left * 1000, MAX_POLL_MILLISECONDS)):
                    raise TimeoutError
            if not self._take_in():
                return 0

    def _decrypted(self, view: memoryview) -> int | None:
        """None while the rest of a record is on its way."""
        try:
            return self._tls.read(len(view), view)  # type: ignore[return-value]
        except self._unready:
            return None
        except OSError as error:
            raise ConnectionResetError(str(error)) from error

    def meet_awake(self) -> None:
        """To be woken takes longer than most messages are apart: look for one before we sleep."""
        if self._came.pending:
            return
        asleep = time.perf_counter() + AWAKE_SECONDS
        while time.perf_counter() < asleep:
            if self._poll.poll(0):  # to try to read would hold the socket while bytes arrive
                return
            os.sched_yield()

    def _take_in(self) -> int:
        try:
            got = self.sock.recv_into(self._chunk)
        except OSError as error:
            raise ConnectionResetError(str(error)) from error
        self._came.write(self._chunk[:got])
        return got

    def _flush(self) -> None:
        if self._goes.pending:
            try:
                self.sock.sendall(self._goes.read())
            except OSError as error:
                raise ConnectionResetError(str(error)) from error


class Arrived(mmap.mmap):
    """A file that came over a connection, in memory of ours, which may be larger."""


class Arrivals:
    """Memory for what comes. New pages take as long as all else that brings a large array here: it
    is kept, and taken again once no value lies in it.

    keep_bytes: how many at most; it may be changed.
    """

    def __init__(self, keep_bytes: int = 0) -> None:
        self.keep_bytes = keep_bytes
        self._kept: list[Arrived] = []  # the longest not taken first

    def take(self, size: int) -> Arrived:
        """At least so many bytes, whatever stands in them."""
        capacity = 1 << max(0, size - 1).bit_length()  # untouched pages cost nothing
        file = self._idle(capacity) or _anonymous(capacity)
        self._kept.append(file)
        while sum(map(len, self._kept)) > self.keep_bytes:
            self._kept.pop(0)
        return file

    def _idle(self, capacity: int) -> Arrived | None:
        for at in range(len(self._kept)):
            if len(self._kept[at]) == capacity and _references(self._kept, at) == _UNUSED:
                return self._kept.pop(at)
        return None


def _references(things: Sequence[object], at: int) -> int:
    return sys.getrefcount(things[at])


_UNUSED = _references([object()], 0)
"""Of what is in a list, and nowhere else. Arrays and views refer to the memory that they lie in."""


def _anonymous(size: int) -> Arrived:
    try:
        file = Arrived(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no memory for {size} bytes") from error
    if size >= HUGE_PAGE_BYTES:
        with contextlib.suppress(OSError):  # a kernel without them
            file.madvise(mmap.MADV_HUGEPAGE)
    return file


class StreamChannel:
    """Messages over a TLS connection, each with files if wished: a memory file crosses as bytes.

    Raises ConnectionError or EOFError if the other end is gone.
    on_output: gets what the other end sends on of what is printed there, while one is awaited.
    arrivals: memory for files that come.
    """

    passes_descriptors = False

    def __init__(self, stream: TlsStream, on_output: OnOutput = ignore_output) -> None:
        self._stream = stream
        self.sock = stream.sock
        self.on_output = on_output
        self.arrivals = Arrivals()
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = self._end = 0

    def send(self, message: object, files: Sequence[SentFile] = ()) -> None:
        self._send(MESSAGE, pickle.dumps(message, 5), files)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[Arrived]]:
        """The next message and its files. Raises TimeoutError if none comes within `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            if self._start == self._end:
                self._stream.meet_awake()
            kind, count, length = HEAD.unpack(self._take(HEAD.size, until))
            sizes = struct.unpack(f"<{count}Q", self._take(8 * count, until)) if count else ()
            body = self._take(length, until)
            if kind == MESSAGE:
                message = pickle.loads(body)
                return message, [self._file(size, until) for size in sizes]
            self.on_output(kind, bytes(body))

    def close(self) -> None:
        self.sock.close()

    def _send(self, kind: int, body: bytes, files: Sequence[SentFile] = ()) -> None:
        head = HEAD.pack(kind, len(files), len(body))
        if files:
            head += struct.pack(f"<{len(files)}Q", *(size for _, size in files))
        self._stream.write(head + body)
        for file, size in files:
            if isinstance(file, int):
                with (
                    mmap.mmap(file, size, access=mmap.ACCESS_READ) as memory,
                    memoryview(memory) as view,
                ):
                    self._stream.write(view)
                continue
            for view in [memoryview(file)[:size]] if isinstance(file, mmap.mmap) else file:
                self._stream.write(view)

    def _file(self, size: int, until: float | None) -> Arrived:
        file = self.arrivals.take(size)
        with memoryview(file) as whole, whole[:size] as view:
            self._fill(view, until)
        return file

    def _take(self, size: int, until: float | None) -> memoryview:
        """So many bytes; the buffer may hold them, so they are there until the next read."""
        start = self._start
        if start == self._end and size:
            start = self._start = 0
            self._end = self._read(self._buffer, until) if size < BUFFER_BYTES else 0
        end = start + size
        if end <= self._end:
            self._start = end
            return self._buffer[start:end]
        taken = memoryview(bytearray(size))
        self._fill(taken, until)
        return taken

    def _fill(self, view: memoryview, until: float | None) -> None:
        """Larger reads go past the buffer."""
        while view:
            if self._start < self._end:
                got = min(len(view), self._end - self._start)
                view[:got] = self._buffer[self._start : self._start + got]
                self._start += got
                view = view[got:]
            elif len(view) >= BUFFER_BYTES:
                view = view[self._read(view, until) :]
            else:
                self._start, self._end = 0, self._read(self._buffer, until)

    def _read(self, view: memoryview, until: float | None) -> int:
        got = self._stream.read_into(view, until)
        if not got:
            raise EOFError
        return got


class RelayingChannel(StreamChannel):
    """The worker's end: what is printed meanwhile goes along, and all of it before an answer.

    It is sent on only while the engine awaits an answer: OpenSSL lets no two threads use a
    connection, and two ends that both write may wait for each other.
    """

    def __init__(self, stream: TlsStream, readers: Sequence[int] = READER_FDS) -> None:
        super().__init__(stream)
        self._readers = dict(zip(readers, (STDOUT, STDERR), strict=True))
        self._printed = self._poll_of_readers()
        self._using = threading.Lock()
        """Ours while the engine awaits nothing, and while an answer is sent."""
        self._using.acquire()
        self._awaited = False
        threading.Thread(target=self._relay, daemon=True).start()

    def send(self, message: object, files: Sequence[SentFile] = ()) -> None:
        if self._awaited:
            self._using.acquire()
            self._awaited = False
        if self._printed.poll(0):
            self._drain()
        self._send(MESSAGE, pickle.dumps(message, 5), files)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[Arrived]]:
        message, files = super().receive(seconds)
        if type(message) is tuple and message[0] in ANSWERED:
            self._awaited = True
            self._using.release()
        return message, files

    def _poll_of_readers(self) -> select.poll:
        printed = select.poll()
        for fd in self._readers:
            printed.register(fd, select.POLLIN)
        return printed

    def _relay(self) -> None:
        printed = self._poll_of_readers()  # two threads may not use one
        while True:
            printed.poll()
            with self._using:
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
    sock = socket.create_connection((host, int(port)))
    os.register_at_fork(after_in_child=sock.close)
    channel = RelayingChannel(TlsStream(sock, context_of(pem, server=False), server=False))
    try:
        channel.send(sys.version_info[:2])
        hello, _ = channel.receive()
        worker.Worker(channel, hello, PAGE_FD).serve()
    except (EOFError, ConnectionError):
        return
    except MemoryError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
