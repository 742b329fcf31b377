"""An object store of S3's kind on this machine, and a way to it on which things go wrong."""

import io
import json
import logging
import re
import socket
import socketserver
import tarfile
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from moto.server import ThreadedMotoServer
from typing_extensions import Buffer

from flowos._native import Cache, Catalog, Feeder
from flowos.feeder._interfaces import Source
from flowos.feeder._python_source_thread import serve

# What becomes of a request, by its path and how many came before it for the same path.
Fate = Callable[[str, int], str]

SECRET = "a-secret-that-nobody-prints"


class ObjectStore:
    """moto's server: real HTTP, S3's answers."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.address = (host, port)
        self.url = f"http://{host}:{port}"

    def bucket(self, name: str, objects: Mapping[str, bytes]) -> None:
        self._ask("PUT", f"/{name}")
        for key, data in objects.items():
            self.put(name, key, data)

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._ask("PUT", f"/{bucket}/{urllib.parse.quote(key)}", data)

    def remove(self, bucket: str, key: str) -> None:
        self._ask("DELETE", f"/{bucket}/{urllib.parse.quote(key)}")

    def forget_all(self) -> None:
        self._ask("POST", "/moto-api/reset")

    def stop(self) -> None:
        self._server.stop()

    def _ask(self, method: str, path: str, data: bytes | None = None) -> None:
        ask = urllib.request.Request(self.url + path, data, method=method)
        ask.add_header("x-amz-acl", "public-read")
        ask.add_header("content-type", "application/octet-stream")
        with urllib.request.urlopen(ask, timeout=300) as answer:
            answer.read()


class WebHdfs:
    """Files of Hadoop's kind over HTTP, as much as reading takes; fsspec asks by `requests`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urllib.parse.urlsplit(self.path)
                said = urllib.parse.parse_qs(asked.query)
                name = asked.path.rstrip("/").rpartition("/")[2]
                body = files.get(name, b"")
                if said["op"] == ["OPEN"]:
                    start = int(said["offset"][0])
                    body = body[start : start + int(said["length"][0])]
                elif said["op"] == ["LISTSTATUS"]:
                    listed = [status(each) for each in files]
                    body = json.dumps({"FileStatuses": {"FileStatus": listed}}).encode()
                else:
                    body = json.dumps({"FileStatus": status(name)}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Not at all."""

        def status(name: str) -> dict[str, object]:
            return {"pathSuffix": name, "type": "FILE", "length": len(files[name])}

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = ("127.0.0.1", self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class BadRoad:
    """Passes requests on to a store, one connection each, and lets some of them go wrong.

    What a fate says: "" all is well; "500" or another status instead of the answer, "503 2" with
    Retry-After of so many seconds; "cut" after
    half of the answer; "short", of half as many bytes as there are; "hang"; or "late", by seconds.
    """

    def __init__(self, store: "ObjectStore | WebHdfs") -> None:
        self.fate: Fate = lambda _path, _before: ""
        self.asked: list[str] = []
        self._there = store.address
        self._ending = threading.Event()
        self._lock = threading.Lock()
        road = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                road._pass_on(self.request)

        class Server(socketserver.ThreadingTCPServer):
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _pass_on(self, line: socket.socket) -> None:
        while head := _head(line):
            path = urllib.parse.unquote(head.split(b" ")[1].decode().partition("?")[0])
            with self._lock:
                before = self.asked.count(path)
                self.asked.append(path)
            if not self._one(line, head, self.fate(path, before)):
                return

    def _one(self, line: socket.socket, head: bytes, fate: str) -> bool:
        """Whether the connection goes on."""
        if fate == "hang":
            self._ending.wait(120)
            return False
        status, _, seconds = fate.encode().partition(b" ")
        if status.isdigit():
            body = b"<Error><Code>Odd</Code></Error>"
            asks = b"retry-after: %s\r\n" % seconds if seconds else b""
            line.sendall(
                b"HTTP/1.1 %s Odd\r\n%scontent-length: %d\r\n\r\n" % (status, asks, len(body))
            )
            line.sendall(body)
            return True
        answer = _answer(self._there, head)
        if fate == "cut":
            line.sendall(answer[: answer.index(b"\r\n\r\n") + 4])
            body = answer[answer.index(b"\r\n\r\n") + 4 :]
            line.sendall(body[: len(body) // 2])
            return False
        if fate == "short" and head.startswith(b"GET"):
            before, _, body = answer.partition(b"\r\n\r\n")
            length = b"content-length: %d" % (len(body) // 2)
            line.sendall(re.sub(rb"(?i)content-length: \d+", length, before) + b"\r\n\r\n")
            line.sendall(body[: len(body) // 2])
            return False
        if fate == "late":
            self._ending.wait(60)
        line.sendall(answer)
        return False


def _head(line: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        more = line.recv(1 << 16)
        if not more:
            return b""
        head += more
    return head


def _answer(there: tuple[str, int], head: bytes) -> bytes:
    with socket.create_connection(there, timeout=300) as store:
        store.sendall(head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        answer = b""
        while more := store.recv(1 << 16):
            answer += more
    return answer


def set_variables(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """As a person sets them for a store of his own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


def tar_of(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


class Once:
    """The feeder's side of a source: asks for each of some samples once, and notes what came."""

    def __init__(self, samples: Sequence[int]) -> None:
        self.pushed: dict[int, bytes] = {}
        self.failed: dict[int, str] = {}
        self.offered: dict[int, bytes] = {}
        self._left = list(samples)
        self._open = len(samples)
        self._changed = threading.Condition()

    def pull(self, max_tickets: int) -> list[tuple[int, int]]:
        with self._changed:
            got, self._left = self._left[:max_tickets], self._left[max_tickets:]
            self._changed.wait_for(lambda: got or not self._open, 30)
            return [(1000 + sample, sample) for sample in got]

    def push(self, id: int, data: Buffer) -> None:
        self.pushed[id - 1000] = bytes(data)
        self._done()

    def fail(self, id: int, why: str) -> None:
        self.failed[id - 1000] = why
        self._done()

    def closed(self) -> bool:
        return False

    def offer(self, sample: int, data: Buffer) -> bool:
        self.offered[sample] = bytes(data)
        return True

    def _done(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()


def served(source: Source, samples: Sequence[int] | None = None) -> Once:
    """What a source gives for these samples, asked for once; all of them if none are named."""
    catalog = source.catalog()
    tickets = Once(range(len(catalog)) if samples is None else samples)
    source.serve(tickets, catalog)
    return tickets


def fed(
    source: Source, cache: Cache | None = None, epochs: int = 1, **how: Any
) -> dict[str, bytes]:
    """What the feeder gives of a source, by name: every sample once per epoch."""
    catalog = source.catalog()
    feeder = Feeder(catalog, None, cache, None, batch_size=how.pop("batch_size", 8), **how)
    serving = serve(source, feeder, catalog, cache)
    got: dict[str, bytes] = {}
    try:
        for epoch in range(epochs):
            feeder.seek(epoch, 0)
            seen = _epoch(feeder, catalog)
            assert not got or seen == got
            got = seen
    finally:
        feeder.close()
        serving.join(60)
    assert not serving.is_alive()
    return got


def _epoch(feeder: Feeder, catalog: Catalog) -> dict[str, bytes]:
    seen: dict[str, bytes] = {}
    while batch := feeder.next():
        places = zip(batch.samples, batch.offsets, batch.lengths, strict=True)
        for sample, offset, length in places:
            name = catalog.name(int(sample))
            assert name not in seen
            seen[name] = batch.data[offset : offset + length].tobytes()
    assert len(seen) == len(catalog)
    return seen
