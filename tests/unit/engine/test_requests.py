import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowos.engine import RequestListener, request

FOREVER = 1e6


class Slow:
    """Answers once it is let go."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def answer(self, verb: str, words: list[str]) -> str:
        self.asked.set()
        self.go.wait()
        return " ".join([verb, *words])


class Asking(threading.Thread):
    """A request from another thread, as of another terminal."""

    def __init__(self, fifo: Path) -> None:
        super().__init__(daemon=True)
        self.fifo = fifo
        self.said: str | None = None
        self.start()

    def run(self) -> None:
        self.said = request(self.fifo, "free", "this", seconds=FOREVER)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    return tmp_path / "program.fifo"


@pytest.fixture
def slow() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    slow.go.set()


def test_close_answers_what_was_asked_before(fifo: Path, slow: Slow) -> None:
    listener = RequestListener(fifo, slow.answer)
    asking = Asking(fifo)
    slow.asked.wait()
    closing = threading.Thread(target=listener.close)
    closing.start()
    slow.go.set()
    closing.join()
    assert [each.name for each in fifo.parent.iterdir() if "part" in each.name] == []
    asking.join()
    assert asking.said == "free this"
    with pytest.raises(FileNotFoundError):
        request(fifo, "free", "this", seconds=FOREVER)


def test_a_request_ends_with_the_program_that_it_asks(fifo: Path) -> None:
    program = f"""
import pathlib, time
from flowos.engine import RequestListener
def answer(verb, words):
    print("asked", flush=True)
    time.sleep({FOREVER})
RequestListener(pathlib.Path({str(fifo)!r}), answer)
print("listens", flush=True)
time.sleep({FOREVER})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "listens\n"
        asking = Asking(fifo)
        assert started.stdout.readline() == "asked\n"
        started.kill()
    asking.join()
    assert asking.said is None
    with pytest.raises(OSError, match="No such device"):
        request(fifo, "free", "this", seconds=FOREVER)
