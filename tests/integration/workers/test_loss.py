"""Worker processes that are lost, or never come."""

import gc
import os
import signal
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import flowos as fo
from flowos.engine import here
from flowos.engine.flow._inside import Surroundings
from flowos.engine.workers._process_lanes import ProcessLanes
from flowos.model import LaunchFailed
from flowos.plan import compile_flow
from tests.waiting import PATIENCE_SECONDS

from .shared import await_file, descendants, gone, one, same, task, write_pid
from .tasks import die, dies, raises


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kill", r"was killed by signal 9 \(SIGKILL\)"),
        ("exit", r"exited with code 3"),
        ("segfault", r"was killed by signal 11 \(SIGSEGV\)"),
        ("segfault in a child's parent", r"was killed by signal 11 \(SIGSEGV\)"),
    ],
)
def test_a_lost_worker_fails_the_run_with_its_tasks_name_and_the_next_run_works(
    how: str, told: str
) -> None:
    x = fo.flow_input("x", fo.any_)
    flow = fo.flow_output(task("after", same)(task("dies", die)(task("before", same)(x))))
    with fo.slice(flow, workers="process", cores=1) as s:
        assert s.run("fine") == ["fine"]
        before = descendants(os.getpid())
        with pytest.raises(
            fo.WorkerLost, match=rf"task 'dies': its worker process is gone: it {told}"
        ):
            s.run(how)
        assert gone(before)
        assert s.run("fine") == ["fine"]
    assert gone(descendants(os.getpid()))


def test_a_worker_killed_from_outside_fails_the_run_at_once(tmp_path: Path) -> None:
    said = tmp_path / "pid"

    def says_its_pid_and_sleeps(_: object) -> None:
        write_pid(said)
        time.sleep(300)

    killed: list[float] = []

    def kill() -> None:
        pid = int(await_file(said))
        killed.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with one(says_its_pid_and_sleeps) as s, pytest.raises(fo.WorkerLost, match="'only'"):
        s.run(1)
    assert time.monotonic() - killed[0] < PATIENCE_SECONDS  # it would sleep on; it is a few ms
    killer.join()


def test_a_worker_that_died_idle_is_replaced_unseen() -> None:
    with one(lambda _: os.getpid()) as s:
        first = s.run(0)[0]
        os.kill(first, signal.SIGKILL)
        assert gone({first})
        assert s.run(0)[0] != first


def test_lost_workers_leave_no_descriptor_behind() -> None:
    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with one(die) as s:
        counts = []
        for _ in range(8):
            with pytest.raises(fo.WorkerLost):
                s.run("exit")
            counts.append(held())
    assert counts[-1] <= counts[0] + 2


def test_a_python_that_is_missing_or_broken_is_told_in_one_line(tmp_path: Path) -> None:
    schedule = compile_flow(fo.flow_output(task("only", same)(fo.flow_input("x", fo.any_))))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no module named site' >&2\nexit 1\n")
    broken.chmod(0o755)
    for python, told in (("/no/such/python", "/no/such/python"), (str(broken), "no module named")):
        lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()), python=python)
        try:
            with pytest.raises(LaunchFailed, match=told) as caught:
                lanes.lanes[0].run(schedule.stages, [[1]])
            assert str(caught.value).startswith("task 'only': a worker process could not start: ")
            assert "\n" not in str(caught.value)
        finally:
            lanes.close()


def test_a_module_that_ends_the_worker_while_it_is_imported_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ends.py").write_text(
        f"import os\nif os.getpid() != {os.getpid()}: os._exit(7)\ndef f(x): return x\n"
    )
    ends: Any = __import__("ends")
    with one(ends.f) as s, pytest.raises(fo.WorkerLost, match=r"'only'.*while it loaded.*code 7"):
        s.run(1)


@pytest.mark.parametrize(
    ("workers", "fails"), [("thread", raises), ("process", raises), ("process", dies)]
)
def test_what_a_failed_run_held_goes_with_its_error(
    workers: Literal["thread", "process"], fails: Any
) -> None:
    """Not only when the collector comes: a value may be most of the memory."""
    x, y = fo.flow_input("x", fo.any_), fo.flow_input("y", fo.any_)
    flow = fo.flow_output(task("fails", fails)(x), task("same", same)(y))
    with fo.slice(flow, workers=workers, cores=2) as s:
        value = np.zeros(100_000)
        seen = weakref.ref(value)
        gc.collect()
        gc.disable()
        try:
            failed = False
            try:
                s.run(value, 1)
            except fo.FlowosError:
                failed = True
            del value
            assert failed
            until = time.monotonic() + PATIENCE_SECONDS
            while seen() is not None and time.monotonic() < until:
                time.sleep(0.01)  # the other task may run still
            assert seen() is None
        finally:
            gc.enable()


def test_a_worker_that_dies_at_its_first_word_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    hasty = tmp_path / "hasty"
    hasty.write_text(
        f"#!{sys.executable}\nimport os, pickle, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect(sys.argv[-1])\n"
        "s.send(b'\\0' + pickle.dumps(sys.version_info[:2]))\nos._exit(4)\n"
    )
    hasty.chmod(0o755)
    schedule = compile_flow(fo.flow_output(task("only", same)(fo.flow_input("x", fo.any_))))
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()), python=str(hasty))
    try:
        with pytest.raises(fo.WorkerLost, match=r"'only'.*while it loaded.*code 4"):
            lanes.lanes[0].run(schedule.stages, [[1]])
    finally:
        lanes.close()
