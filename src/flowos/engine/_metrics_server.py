"""Metrics of this process for Prometheus, over HTTP: on loopback by default.

prometheus_client writes the text and answers requests; only GET /metrics is answered.
"""

import ipaddress
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from flowos.model import FlowosError, UsageError

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

_TIMEOUT_SECONDS = 5.0


class At(NamedTuple):
    """Where it is served."""

    host: str
    port: int


class MetricsServer:
    """Answers in background threads until it is closed, or the process ends."""

    def __init__(self, at: str, collector: "Collector", *, anywhere: bool = False) -> None:
        """Serve what `collector` gives at each request.

        at: HOST:PORT; port 0 is any free one.
        Raises UsageError if `at` is no such thing, or if others can reach it without `anywhere`.
        Raises FlowosError if prometheus_client is missing, or the port is taken.
        """
        host, port = _place(at)
        if not anywhere:
            _check_loopback(host)

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

        handler = _handler(collector)
        try:
            self._server = Server((host, port), handler)
        except OSError as why:
            raise FlowosError(f"metrics at {at}: {why.strerror}") from why
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="flowos-metrics", daemon=True
        )
        self._thread.start()

    @property
    def at(self) -> At:
        return At(*self._server.server_address[:2])  # type: ignore[arg-type]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "MetricsServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _handler(collector: "Collector") -> type[BaseHTTPRequestHandler]:
    try:
        from prometheus_client import CollectorRegistry, MetricsHandler
    except ImportError:
        raise FlowosError(
            "metrics are served by the package prometheus_client: pip install 'flowos-hpc[metrics]'"
        ) from None
    only_this = CollectorRegistry()
    only_this.register(collector)

    class Handler(MetricsHandler):
        """Suppresses request logging, as its base class does."""

        timeout = _TIMEOUT_SECONDS
        server_version, sys_version = "flowos", ""
        registry = only_this

        def do_GET(self) -> None:  # noqa: N802 - http.server's name
            if self.path.partition("?")[0] == "/metrics":
                super().do_GET()
            else:
                self.send_error(404, "only /metrics is here")

    return Handler


def _place(at: str) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+):(\d{1,5})", at)
    if not found or int(found[2]) > 65535:
        raise UsageError(f"metrics at {at!r:.80}; expected HOST:PORT, as 127.0.0.1:9100")
    return found[1].strip("[]"), int(found[2])


def _check_loopback(host: str) -> None:
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        raise UsageError(
            f"metrics at {host}: others could read them there; give 127.0.0.1, or anywhere=True"
        )
