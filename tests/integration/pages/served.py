"""A `flowos serve` of a test's own, and a client that has opened its address."""

import http.client
import json
import subprocess
import sys
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import PATIENCE_SECONDS


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Served:
    """The process and its address; ended at the end of a `with`."""

    folder: Path
    variables: dict[str, str]
    words: tuple[str, ...] = ()
    cookie: str = ""
    url: str = field(init=False, default="")

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flowos", "serve", "--json", *self.words],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=PATIENCE_SECONDS)
        said = json.loads(line)
        self.url, self.port = said["url"], said["port"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.terminate()
        self.said = self.process.communicate(timeout=PATIENCE_SECONDS)[1]

    def client(self) -> Self:
        """Another one, which has not opened the address."""
        found = copy(self)
        found.cookie = ""
        return found

    def open(self) -> Self:
        """Open the address that was printed, as a browser does."""
        answer = self.ask(self.url.partition(str(self.port))[2])
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return self

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        sent = {"Cookie": self.cookie} if self.cookie else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, headers=sent)
            got = connection.getresponse()
            return Answer(got.status, dict(got.getheaders()), got.read().decode())
        finally:
            connection.close()

    def page(self, path: str = "/") -> str:
        answer = self.ask(path)
        assert answer.status == 200, answer
        return answer.text
