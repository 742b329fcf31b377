"""Pages of `flowos serve` with 10,000 runs and 1,000 programs kept, next to a few of them.

`python benchmarks/serve.py [--json] [--rounds N]`
Seconds from the request to the last byte, as the client sees it: of each page when it is drawn
(something was kept just before), and of the question whether it changed; that also of a bare
http.server, which answers 304 to all. In turns, in one run. The pages show how much there is.
"""

import argparse
import http.client
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from _numbers import whole_number

from flowos.model import Process, SliceUse
from flowos.report import read_json
from flowos.store import open_store

RUN = Path(__file__).parents[1] / "tests/data/run.json"
SAMPLES = 20
SIZES = {"many": (10_000, 1000), "few": (50, 50)}
PAGES = {"/": "10:00", "/programs": "programs", "/runs": "runs of"}
"""Address -> words that its page has."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=20)
    rounds = parser.parse_args().rounds
    with ExitStack() as opened:
        clients = {name: opened.enter_context(served(*size)) for name, size in SIZES.items()}
        bare = Client(opened.enter_context(bare_server()))
        drawn: dict[str, list[float]] = {}
        asked: dict[str, list[float]] = {}
        for number in range(rounds):
            for name, client in clients.items():
                client.keep(number)
                for path, words in PAGES.items():
                    seconds, text = client.get(path)
                    assert words in text, (path, text)
                    drawn.setdefault(f"{name} {path}", []).append(seconds)
                asked.setdefault(name, []).append(client.ask_again())
            asked.setdefault("bare", []).append(bare.ask_again())
    answer = {
        "rounds": rounds,
        "seconds_drawn": {name: spread(values) for name, values in drawn.items()},
        "seconds_unchanged": {name: spread(values) for name, values in asked.items()},
    }
    print(json.dumps(answer, indent=1))
    return 0


def spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "low": min(values), "high": max(values)}


class Client:
    """Of one server, over a connection that stays. file: its store."""

    def __init__(self, port: int, target: str = "", file: Path | None = None) -> None:
        self._wire = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._file = file
        self._headers: dict[str, str] = {}
        if target:
            answer, _ = self._ask(target)
            cookie = str(answer.headers["Set-Cookie"])
            self._headers = {"Cookie": cookie.partition(";")[0]}

    def get(self, path: str) -> tuple[float, str]:
        begun = time.perf_counter()
        answer, text = self._ask(path)
        assert answer.status == 200, text
        return time.perf_counter() - begun, text

    def ask_again(self) -> float:
        """Whether the last one changed."""
        if "Cookie" in self._headers:
            answer, _ = self._ask("/")
            self._headers["If-None-Match"] = str(answer.headers["ETag"])
        begun = time.perf_counter()
        answer, _ = self._ask("/")
        seconds = time.perf_counter() - begun
        self._headers.pop("If-None-Match", None)
        assert answer.status == 304
        return seconds

    def keep(self, number: int) -> None:
        """So that all pages are drawn again, after the time in which they may not be."""
        assert self._file is not None
        with open_store(str(self._file)) as store:
            store.keep_process(program(10_000 + number))
        time.sleep(3)

    def _ask(self, path: str) -> tuple[http.client.HTTPResponse, str]:
        self._wire.request("GET", path, headers=self._headers)
        answer = self._wire.getresponse()
        return answer, answer.read().decode()


@contextmanager
def served(runs: int, programs: int) -> Iterator[Client]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flowos/flowos.db"
        fill(file, runs, programs)
        process = subprocess.Popen(
            [sys.executable, "-m", "flowos", "serve", "--json"],
            env={**os.environ, "XDG_DATA_HOME": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            target = said["url"].partition(str(said["port"]))[2]
            yield Client(said["port"], target, file)
        finally:
            process.terminate()
            process.wait()


def fill(file: Path, runs: int, programs: int) -> None:
    """Copies of one run with its first samples, and programs."""
    report = read_json(RUN.read_text())
    with open_store(str(file)) as store:
        store.begin(report.run)
        for sample in report.samples[:SAMPLES]:
            store.keep(sample)
        store.keep_process(program(0))
    with sqlite3.connect(file) as database:
        for table, count, key in (
            ("flowos_runs", runs, "id"),
            ("flowos_samples", runs, "run"),
            ("flowos_processes", programs, "id"),
        ):
            rest = {"flowos_samples": "probe, metric, body"}.get(table, "started, host, body")
            database.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                f" INSERT INTO {table} ({key}, {rest})"
                f" SELECT t.{key} || '-' || i, {rest} FROM n, {table} AS t",
                (count - 1,),
            )
    database.close()


def program(number: int) -> Process:
    use = SliceUse(flow="f", pool="local", node="n", env="bare", slices=1, runs=9, held_seconds=1.0)
    return Process(
        id=f"p-{number}",
        argv=("python", "sweep.py"),
        host="node",
        pid=7,
        started="2026-11-20T10:00:00Z",
        ended="2026-11-20T10:05:00Z",
        state="ended",
        uses=(use,),
    )


@contextmanager
def bare_server() -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(304)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Suppresses request logging."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    sys.exit(main())
