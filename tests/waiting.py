"""To wait in a test for what another process does."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 50
"""A busy machine takes long; what has to be ended would go on for at least a minute."""


def comes(true: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """Asks until it is so; a fourth of the time at most, as others need the processors.

    Where it takes long to ask, a busy machine would else do little but be asked.
    """
    until = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if true():
            return True
        answered = time.monotonic()
        if answered > until:
            return False
        time.sleep(min(1.0, max(0.005, 3 * (answered - asked))))


def in_a_thread(act: Any) -> tuple[threading.Thread, list[Any]]:
    """Begin it; the list gets what it returns or raises."""
    answers: list[Any] = []

    def call() -> None:
        try:
            answers.append(act())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, answers


def numbers_in(path: Path, count: int, seconds: float = PATIENCE_SECONDS) -> list[int]:
    """So many, once they stand in the file."""
    there = comes(lambda: path.exists() and len(path.read_text().split()) >= count, seconds)
    assert there, f"{path} never got {count} numbers"
    return [int(word) for word in path.read_text().split()[:count]]


def ended(programs: Iterable["subprocess.Popen[str]"]) -> None:
    """Kills those that still run; the pipes are closed of all, also of those that ended before."""
    for program in programs:
        program.kill()
        program.communicate()
