"""What ends with an object that the collector takes."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable

import pytest

from flowos._collected import apart, when_collected

_LONG_SECONDS = 60


class Cycle:
    """Only the collector can take it."""

    def __init__(self) -> None:
        self.itself = self


def test_the_collector_may_run_while_its_thread_holds_the_lock_that_the_end_takes() -> None:
    lock, ended, names = threading.Lock(), threading.Event(), []

    def end() -> None:
        with lock:
            names.append(threading.current_thread().name)
            ended.set()

    def collect() -> None:
        with lock:
            cycle = Cycle()
            when_collected(cycle, end)
            watched.append(weakref.ref(cycle))
            del cycle
            gc.collect()

    watched: list[Callable[[], object]] = []
    collecting = threading.Thread(target=collect, daemon=True)
    collecting.start()
    collecting.join(_LONG_SECONDS)
    assert not collecting.is_alive()
    assert watched[0]() is None
    assert ended.wait(_LONG_SECONDS)
    assert names == ["flowos-collected"]


def test_who_ends_it_by_hand_does_so_once() -> None:
    calls: list[int] = []
    cycle = Cycle()
    ending = when_collected(cycle, lambda: calls.append(1))
    for _ in range(2):
        if ending.detach():
            calls.append(2)
    del cycle
    gc.collect()
    apart(lambda: calls.append(3))
    while 3 not in calls:
        threading.Event().wait(0.001)
    assert calls == [2, 3]


@pytest.mark.parametrize("how", ["", "; import weakref; weakref.finalize(here, print, 'other')"])
def test_at_exit_it_is_called_before_the_process_is_gone(how: str) -> None:
    program = (
        "from flowos._collected import when_collected\n"
        "class Here: pass\n"
        f"here = Here(){how}\n"
        "when_collected(here, lambda: print('ended'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == "ended"


@pytest.mark.parametrize("refused", ["_thread.start_new_thread", "threading.Thread.start"])
def test_what_no_thread_can_begin_any_more_is_ended_at_exit(refused: str) -> None:
    """From Python 3.12 on none starts while the interpreter ends, which has begun by then."""
    program = (
        "import _thread, threading\n"
        "from flowos._collected import when_collected\n"
        "class Owner: pass\n"
        "owner = Owner()\n"
        "when_collected(owner, lambda: print('ended'))\n"
        "def start(*_):\n"
        '    raise RuntimeError("can\'t create new thread at interpreter shutdown")\n'
        f"{refused} = start\n"
        "del owner\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ended\n", "")
