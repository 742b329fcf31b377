"""Serves pages to one person over HTTP, on loopback: a thread for each connection."""

import secrets
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from flowos._dataclasses import replace
from flowos.engine._page_guard import (
    PageAnswer,
    PageKeys,
    PageRequest,
    admitted,
    headers_of,
    plain,
    refused,
)
from flowos.model import FlowosError

HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 10.0
_MAX_CONNECTIONS = 64

Pages = Callable[[PageRequest], PageAnswer]


class PageServer:
    """Binds its port when it is made. Raises FlowosError if that fails.

    pages: called by many threads at once. port: 0 is any free one.
    """

    def __init__(self, pages: Pages, port: int = 0) -> None:
        try:
            self._server = _Server((HOST, port), pages)
        except OSError as why:
            raise FlowosError(
                f"port {port} of {HOST} cannot be used: {why.strerror}; "
                "give another, or none for a free one"
            ) from why

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address with its token, which opens the pages."""
        return f"http://{HOST}:{self.port}/?token={self._server.keys.token}"

    def serve(self) -> None:
        """Answer until `stop`, or until an exception comes, as by Ctrl-C."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End `serve`, which another thread runs."""
        self._server.shutdown()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MAX_CONNECTIONS

    def __init__(self, at: tuple[str, int], pages: Pages) -> None:
        self.pages = pages
        self._room = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(at, _Handler)
        self.keys = PageKeys(
            token=secrets.token_urlsafe(32),
            session=secrets.token_urlsafe(32),
            cookie=f"flowos-{self.server_address[1]}",
        )

    def server_bind(self) -> None:
        """Without asking for the name of the host, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT_SECONDS
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # what follows is no request
        self._send(self._answer())

    do_HEAD = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses itself: other methods, and what is no HTTP."""
        self.close_connection = True
        self.request_version = "HTTP/1.0"  # of what is no HTTP it is unknown
        answer = plain(405 if code == 501 else code, message or explain or "This is refused.")
        self._send(replace(answer, headers=(("Allow", "GET, HEAD"), ("Connection", "close"))))

    def log_message(self, *_: object) -> None:
        """Suppresses request logging."""

    def version_string(self) -> str:
        return "flowos"

    def _answer(self) -> PageAnswer:
        hosts = self.headers.get_all("Host", [])
        elsewhere = self.headers.get("Sec-Fetch-Site", "none") == "cross-site"
        cookies = self.headers.get_all("Cookie", [])
        request = refused(hosts) or admitted(
            self.path, cookies, self.server.keys, from_elsewhere=elsewhere
        )
        if isinstance(request, PageAnswer):
            return request
        version = self.headers.get("If-None-Match", "").removeprefix("W/").strip('"')
        try:
            return self.server.pages(replace(request, version=version))
        except Exception as error:
            return plain(500, f"This page cannot be made: {type(error).__name__}: {error}")

    def _send(self, answer: PageAnswer) -> None:
        self.send_response(answer.status)
        for name, value in headers_of(answer):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
