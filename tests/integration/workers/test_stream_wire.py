"""Messages to workers of other nodes: over TLS, with files, with what is printed there."""

import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy
import pytest

from flowos.engine.workers import stream_worker
from flowos.engine.workers._listeners import StreamListener, certificate
from flowos.engine.workers.stream_worker import (
    BUFFER_BYTES,
    STDERR,
    STDOUT,
    Arrivals,
    Arrived,
    RelayingChannel,
    StreamChannel,
    TlsStream,
    context_of,
)
from flowos.model import LaunchFailed

Ends = tuple[StreamChannel, RelayingChannel]
"""The engine's, and a worker's."""


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("session"))


@pytest.fixture
def writers() -> Iterator[list[int]]:
    """Where the worker prints."""
    fds = [*os.pipe(), *os.pipe()]
    for reader in fds[::2]:
        os.set_blocking(reader, False)
    yield fds
    for fd in fds:
        os.close(fd)


@pytest.fixture
def ends(pem: Path, writers: list[int]) -> Iterator[Ends]:
    with closing(StreamListener("127.0.0.1", pem)) as listener:
        found: list[RelayingChannel] = []

        def connect() -> None:
            address, port, _ = listener.words
            sock = socket.create_connection((address, int(port)))
            stream = TlsStream(sock, context_of(str(pem), server=False), server=False)
            found.append(RelayingChannel(stream, writers[::2]))

        worker = threading.Thread(target=connect)
        worker.start()
        engine = listener.accept(30)
        worker.join()
    assert isinstance(engine, StreamChannel)
    yield engine, found[0]
    engine.close()
    found[0].close()


def memory_file(content: bytes) -> int:
    fd = os.memfd_create("test")
    os.write(fd, content)
    return fd


@pytest.mark.parametrize("size", [0, 1, BUFFER_BYTES - 1, BUFFER_BYTES, 5_000_000])
def test_messages_of_any_size_arrive_whole_with_their_files(ends: Ends, size: int) -> None:
    content = os.urandom(max(1, size))
    fd = memory_file(content + b"and more, that is not sent")
    files = [(fd, len(content)), (fd, 1)]
    sender = threading.Thread(target=ends[0].send, args=(["x" * size], files))
    sender.start()
    message, came = ends[1].receive()
    sender.join()
    os.close(fd)
    assert message == ["x" * size]
    assert [each[: len(content)] for each in came[:1]] + [came[1][:1]] == [content, content[:1]]


def test_memory_that_a_file_came_into_is_taken_again_once_nothing_lies_in_it(ends: Ends) -> None:
    ends[1].arrivals.keep_bytes = 1 << 30
    arrived = [came(ends, b"1" * 3_000_000)]
    first = memoryview(arrived.pop())[:1]
    second = came(ends, b"2" * 3_000_000)
    assert (bytes(first), second[:1]) == (b"1", b"2"), "a view of it is kept"
    first_address = address(first)
    del first, second
    assert address(memoryview(came(ends, b"3" * 2_500_000))) == first_address


def test_memory_beyond_what_may_be_kept_is_given_back() -> None:
    arrivals = Arrivals(keep_bytes=3 << 20)
    taken = [weakref.ref(arrivals.take(size)) for size in (1 << 20, 1 << 21, 1 << 22, 1 << 21)]
    assert [each() is not None for each in taken] == [False, False, False, True]


def came(ends: Ends, content: bytes) -> Arrived:
    """A file from the engine, in the worker."""
    sender = threading.Thread(
        target=ends[0].send, args=("file", [([memoryview(content)], len(content))])
    )
    sender.start()
    _, (file,) = ends[1].receive()
    sender.join()
    assert file[: len(content)] == content
    return file


def address(view: memoryview) -> int:
    return int(numpy.frombuffer(view, "u1").ctypes.data)


def test_messages_that_come_together_are_told_apart(ends: Ends) -> None:
    for number in range(100):
        ends[0].send((number,))
    assert [ends[1].receive()[0] for _ in range(100)] == [(number,) for number in range(100)]


def test_an_answer_that_does_not_come_in_time_is_a_timeout(ends: Ends) -> None:
    with pytest.raises(TimeoutError):
        ends[0].receive(0.05)
    ends[1].send("late")
    assert ends[0].receive(30) == ("late", [])


def test_what_is_printed_is_no_answer_in_time(ends: Ends, writers: list[int]) -> None:
    ends[0].send(("run",))
    ends[1].receive()
    os.write(writers[1], b"still at it")
    with pytest.raises(TimeoutError):
        ends[0].receive(0.3)


def test_an_end_that_is_gone_is_an_end_of_file(ends: Ends) -> None:
    ends[1].close()
    with pytest.raises(EOFError):
        ends[0].receive()


def test_what_was_printed_comes_before_the_answer(ends: Ends, writers: list[int]) -> None:
    printed: list[tuple[int, bytes]] = []
    ends[0].on_output = lambda stream, data: printed.append((stream, data))
    ends[0].send(("run",))
    ends[1].receive()
    os.write(writers[1], b"out")
    os.write(writers[3], b"err")
    ends[1].send("answer")
    assert ends[0].receive(30) == ("answer", [])
    assert sorted(printed) == [(STDOUT, b"out"), (STDERR, b"err")]


def test_what_is_printed_during_a_run_comes_at_once(ends: Ends, writers: list[int]) -> None:
    printed = threading.Event()
    ends[0].on_output = lambda *_: printed.set()
    ends[0].send(("run",))
    ends[1].receive()
    awaiting = threading.Thread(target=ends[0].receive)
    awaiting.start()
    os.write(writers[1], b"out")
    assert printed.wait(30)
    ends[1].send("answer")
    awaiting.join()


def test_nothing_is_sent_on_while_the_engine_sends(ends: Ends, writers: list[int]) -> None:
    """Both would wait for each other as soon as the buffers between them are full."""
    for message in (("bind", ()), ("run",)):
        ends[0].send(message)
        ends[1].receive()
    ends[1].send("answer")
    ends[0].receive()
    os.write(writers[1], bytes(60_000))
    time.sleep(0.1)
    with pytest.raises(TimeoutError):
        ends[0].receive(0.1)
    assert len(os.read(writers[0], 65_536)) == 60_000


def test_who_has_another_certificate_or_none_is_not_let_in(pem: Path, tmp_path: Path) -> None:
    with closing(StreamListener("127.0.0.1", pem)) as listener:
        address, port, _ = listener.words

        def connect(stranger: Path) -> None:
            plain = socket.create_connection((address, int(port)))
            with pytest.raises(OSError, match=r"(?i)certificate|reset|pipe|eof|alert"):  # noqa: PT012
                sock = context_of(str(stranger), server=False).wrap_socket(plain)
                sock.sendall(b"x")
                sock.recv(1)
            plain.close()

        stranger = threading.Thread(target=connect, args=(certificate(tmp_path),))
        stranger.start()
        assert listener.accept(30) is None
        stranger.join()
        with socket.create_connection((address, int(port))) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert listener.accept(30) is None


def test_a_certificate_is_made_once_and_only_we_may_read_it(pem: Path) -> None:
    assert pem.stat().st_mode & 0o777 == 0o600
    assert certificate(pem.parent) == pem
    assert [path.name for path in pem.parent.iterdir()] == [pem.name]


def test_no_openssl_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchFailed, match="there is no openssl here; install it"):
        certificate(tmp_path)
    program = tmp_path / "openssl"
    program.write_text("#!/bin/sh\necho no curve >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(LaunchFailed, match="openssl: no curve"):
        certificate(tmp_path)


def test_it_needs_nothing_but_the_standard_library() -> None:
    words = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import runpy; runpy.run_path({stream_worker.__file__!r})",
    )
    assert subprocess.run(words, capture_output=True, text=True).stderr == ""


def test_a_file_that_no_memory_can_hold_is_said(ends: Ends) -> None:
    body = pickle.dumps("values", 5)
    head = stream_worker.HEAD.pack(stream_worker.MESSAGE, 1, len(body))
    ends[1]._stream.write(head + struct.pack("<Q", 1 << 47) + body)
    with pytest.raises(MemoryError, match=f"no memory for {1 << 47} bytes"):
        ends[0].receive(30.0)
