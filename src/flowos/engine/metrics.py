"""Numbers of this process for Prometheus, over HTTP: on loopback unless said otherwise.

Format: Prometheus' text exposition format, version 0.0.4. Only GET /metrics is answered.
"""

import ipaddress
import math
import re
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple

from flowos.model import FlowosError, UsageError

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE_SECONDS = 5.0
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number. A counter only grows, and its name ends in _total."""

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


Collect = Callable[[], Iterable[Metric]]


class At(NamedTuple):
    """Where it is served."""

    host: str
    port: int


def metrics_text(metrics: Iterable[Metric]) -> str:
    """All metrics of one name stand together, under one description."""
    families: dict[str, list[Metric]] = {}
    for metric in metrics:
        families.setdefault(metric.name, []).append(metric)
    lines: list[str] = []
    for name, family in families.items():
        about = family[0].about.replace("\\", r"\\").replace("\n", r"\n")
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {family[0].kind}"]
        lines += [f"{name}{_labels(metric)} {_number(metric.value)}" for metric in family]
    return "\n".join(lines) + "\n"


def _labels(metric: Metric) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in metric.labels)
    return f"{{{pairs}}}" if pairs else ""


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")
    return repr(value)


class MetricsServer:
    """Answers in threads of its own until it is closed, or the process ends."""

    def __init__(self, at: str, collect: Collect, *, anywhere: bool = False) -> None:
        """at: HOST:PORT; port 0 is any. UsageError: no such place, or one that others can reach
        without `anywhere`. FlowosError: it cannot be had, as when another program has it.
        """
        host, port = _place(at)
        if not anywhere:
            _check_loopback(host)

        class Handler(_Handler):
            text = staticmethod(lambda: metrics_text(collect()))

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

        try:
            self._server = Server((host, port), Handler)
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


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_SECONDS
    server_version, sys_version = "flowos", ""
    text: Callable[[], str]

    def do_GET(self) -> None:
        """The name is http.server's."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "only /metrics is here")
            return
        body = self.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """A training job's output is no place for it."""


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
