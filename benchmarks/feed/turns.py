"""One turn of a contestant in a process of its own, which is always ended."""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from job import Job
from places import HERE

PATIENCE_SECONDS = 45.0
"""In addition to the job's own limit: for imports, starting workers, and output."""

QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONWARNINGS": "ignore",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class TurnFailed(Exception):  # noqa: N818 - reads as what happened
    """The contestant gave no result; the message is the end of its output."""


class Turn:
    """A running contestant. `end` must be called in any case."""

    def __init__(self, python: Path, job: Job, variables: Mapping[str, str]) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end
        self.process = subprocess.Popen(
            [str(python), str(HERE / "turn.py"), json.dumps(asdict(job))],
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
            env={**os.environ, **QUIET, **variables},
            start_new_session=True,
        )
        self.late = threading.Timer(job.seconds + PATIENCE_SECONDS, self.kill)
        self.late.start()

    def kill(self) -> None:
        """Kill all of its processes, as some contestants' workers outlive them."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def answer(self) -> dict[str, Any]:
        """Wait for the result. Raises TurnFailed without one."""
        line = ""
        while self.process.stdout and not line.startswith("{"):
            line = self.process.stdout.readline()
            if not line:
                break
        if not line.startswith("{"):
            self.process.wait()
            raise TurnFailed(self._last_words())
        found: dict[str, Any] = json.loads(line)
        return found

    def _last_words(self) -> str:
        if not self.late.is_alive():
            return "it gave no answer in time"
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"it ended with {self.process.returncode}"

    def end(self) -> None:
        self.late.cancel()
        self.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.stderr.close()


def taken(python: Path, job: Job, variables: Mapping[str, str]) -> dict[str, Any]:
    """The result of a whole turn. Raises TurnFailed without one."""
    turn = Turn(python, job, variables)
    try:
        return turn.answer()
    finally:
        turn.end()
