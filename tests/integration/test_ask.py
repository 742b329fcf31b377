"""A question to a small program is answered or refused in time, whatever it leaves behind."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from flowos.engine._ask import ask

LONG_SECONDS = 600


def test_the_answer_is_there_though_a_child_still_holds_the_output() -> None:
    """A pipe would end only with that child."""
    said = ask(["sh", "-c", f"sleep {LONG_SECONDS} & echo $!; echo oops >&2; exit 3"], seconds=60.0)
    os.kill(int(said.stdout), 9)
    assert (said.code, said.says) == (3, "oops")


def test_what_does_not_answer_in_time_is_killed_with_what_it_started(
    tmp_path: Path, is_gone: Any
) -> None:
    child = tmp_path / "child"
    child.touch()
    for seconds in (1, 10, 100):  # a busy machine may not come so far
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=f"sh: no answer within {seconds} s"):
            ask(["sh", "-c", f"sleep {LONG_SECONDS} & echo $! >{child}; wait"], seconds=seconds)
        assert time.monotonic() - began < LONG_SECONDS / 2
        if child.read_text():
            break
    assert is_gone(int(child.read_text()))


def test_a_large_answer_arrives_whole_and_a_missing_program_is_an_error() -> None:
    said = ask(
        ["sh", "-c", "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2"], seconds=60.0
    )
    assert (len(said.stdout), len(said.stderr)) == (3_000_000, 2_000_000)
    with pytest.raises(FileNotFoundError):
        ask(["/no/such/program"], seconds=1.0)


def asked_while(after: threading.Thread, seconds: int) -> None:
    after.start()
    ask(["sleep", str(seconds)], seconds=60.0)


def test_an_interrupt_at_any_moment_of_a_start_leaves_no_program() -> None:
    main = threading.get_ident()
    for tenths in range(60):
        after = threading.Timer(tenths / 10_000, signal.pthread_kill, (main, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            asked_while(after, LONG_SECONDS + tenths)
        after.join()
    lines = [each.read_bytes() for each in Path("/proc/self/task").glob("*/children")]
    children = [pid for line in lines for pid in line.decode().split()]
    running = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children]
    assert not [words for words in running if words.startswith(b"sleep\0")]
