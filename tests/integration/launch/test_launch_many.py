"""Many launches, threads and processes keep apart."""

import errno
import gc
import os
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from flowos.engine import RunningProcess, here
from flowos.model import BARE, Exited, Killed, Launch, LaunchFailed, Outcome
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def sh(script: str) -> Launch:
    return Launch(argv=("sh", "-c", script), variables=here().variables(BARE))


def test_two_hundred_launches_leave_nothing() -> None:
    for number in range(200):
        assert here().run(sh(f"exit {number % 256}")).end == Exited(number % 256)


def test_launches_of_many_threads_keep_apart() -> None:
    def one(number: int) -> tuple[bytes, bytes]:
        outcome = here().run(sh(f"echo {number}; sleep 0.01; echo e{number} >&2"))
        return outcome.stdout, outcome.stderr

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(80)))
    assert answers == [(b"%d\n" % n, b"e%d\n" % n) for n in range(80)]


def test_many_run_at_once_and_end_in_any_order() -> None:
    running = [here().start(sh(f"sleep 0.{n % 7}; exit {n}")) for n in range(40)]
    assert [r.wait().end for r in running] == [Exited(n) for n in range(40)]


def test_several_threads_may_wait_for_one_launch() -> None:
    running = here().start(sh("exec sleep 0.1"))
    seen: list[Outcome] = []
    threads = [threading.Thread(target=lambda: seen.append(running.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.end for outcome in seen] == [Exited(0)] * 4


def test_ends_are_noticed_on_a_kernel_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(pid: int) -> int:
        raise OSError(errno.ENOSYS, f"no pidfd for {pid}")

    monkeypatch.setattr(os, "pidfd_open", none)
    running = [here().start(sh(f"sleep 0.05; exit {n}")) for n in range(5)]
    assert [r.wait(PATIENCE_SECONDS).end for r in running] == [Exited(n) for n in range(5)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_of_this_process_keeps_no_launch_alive() -> None:
    """A copy of the FIFO's end in a child would keep the command from noticing the closing."""
    running = here().start(sh("exec sleep 300"))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writer)
        good = here().run(sh("true")).ok
        os.read(reader, 1)
        os._exit(0 if good else 1)
    running.stop()
    end = running.wait().end
    os.close(reader)
    os.close(writer)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert end == Killed(signal.SIGTERM, "request")


@pytest.mark.parametrize("command", ["true", "no-such-mpirun"])
def test_a_launch_that_is_over_is_let_go_without_the_collector(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 128 MiB of output are with it."""
    made: list[weakref.ref[RunningProcess]] = []
    init = RunningProcess.__init__

    def noted(self: RunningProcess, *args: object, **named: object) -> None:
        made.append(weakref.ref(self))
        init(self, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(RunningProcess, "__init__", noted)
    gc.collect()
    gc.disable()
    try:
        if command == "true":
            here().run(Launch(argv=(command,)))
        else:
            with suppress(LaunchFailed):
                here().run(Launch(argv=("true",)), launcher="openmpi", mpirun=f"/{command}")
        until = time.monotonic() + PATIENCE_SECONDS
        while made[0]() is not None and time.monotonic() < until:
            time.sleep(0.01)  # its watch is about to sleep
        assert made[0]() is None
    finally:
        gc.enable()
