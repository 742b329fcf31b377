"""Nodes, workers, drivers and daemons that fail while a flow runs: no lost result, no held node."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .box import Box
from .test_box import PATIENCE_SECONDS, processes_of, read_of

DRIVES = Path(__file__).with_name("drives.py")


def awaited(true: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.02)


class Driver:
    """A program that runs items on two nodes, until `let_go`."""

    def __init__(self, box: Box, requeue: str, count: int) -> None:
        self.box = box
        self.lines: list[str] = []
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        words = (sys.executable, str(DRIVES), str(box.shared), requeue, str(count))
        self.process = subprocess.Popen(
            (*box.enter, *words),
            env={**os.environ, **box.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout as said:
            for line in said:
                self._said.put(line.rstrip())
        self._said.put("its output ends")

    def line(self, start: str) -> str:
        """The next one that begins so."""
        while True:
            try:
                line = self._said.get(timeout=2 * PATIENCE_SECONDS)
            except queue.Empty:
                line = "its output ends"
            self.lines.append(line)
            if line.startswith(start):
                return line
            assert line != "its output ends", "\n".join((f"no {start!r}:", *self.lines))

    def workers(self) -> dict[str, int]:
        """Once each node has begun an item: node -> process there, of the box's namespace."""
        nodes: set[str] = set()
        while nodes != {"n1", "n2"}:
            nodes.add(self.line("began ").split()[2])
        return {
            node: pid
            for pid in processes_of(self.box.folder)
            if read_of(pid, "cmdline").startswith(sys.executable.encode())
            if b"/stream_worker.py\0" in read_of(pid, "cmdline")
            for node in nodes
            if f"SLURMD_NODENAME={node}\0".encode() in read_of(pid, "environ")
        }

    def pid(self) -> int:
        """Of the program itself, below nsenter."""
        (found,) = (
            pid
            for pid in processes_of(self.box.folder)
            if read_of(pid, "cmdline").startswith(sys.executable.encode())
            if str(DRIVES).encode() in read_of(pid, "cmdline")
        )
        return found

    def let_go(self) -> None:
        (self.box.folder / "content/go").touch()

    def end(self) -> str:
        """How it ended; all that it held is free."""
        line = self.line("results") if self.lines else ""
        self.line("freed")
        assert self.process.wait(PATIENCE_SECONDS) == 0
        return line


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Box(apart=True) as box:
        driver = Driver(box, *getattr(request, "param", ("yes", 6)))
        yield driver
        driver.process.kill()
        driver.process.wait()


ALL = "results 0 1 2 3 4 5"


def is_free(box: Box) -> bool:
    """A job whose node is down stays in state COMPLETING until that answers."""
    return box.ask("squeue", "--noheader", "--states=PD,CF,R,S") == ""


@pytest.mark.parametrize("fault", ["stop", "unplug"])
def test_items_of_a_node_that_is_lost_run_on_the_other(driver: Driver, fault: str) -> None:
    driver.workers()
    driver.box.act(fault, "n1")
    assert "n1" in driver.line("event lost")
    driver.let_go()
    assert driver.end() == ALL


@pytest.mark.parametrize("driver", [("no", 6)], indirect=True)
def test_a_node_that_is_lost_is_named_where_nothing_may_run_twice(driver: Driver) -> None:
    driver.workers()
    driver.box.act("stop", "n1")
    failed = driver.line("failed WorkerLost")
    assert "node n1 is lost" in failed
    driver.let_go()
    driver.line("freed")
    assert is_free(driver.box)


def test_a_worker_that_is_killed_is_told_with_its_task_and_its_node_stays(driver: Driver) -> None:
    os.kill(driver.workers()["n1"], signal.SIGKILL)
    failed = driver.line("failed WorkerLost")
    assert "task 'item'" in failed
    assert "killed by signal 9" in failed
    driver.line("freed")
    assert is_free(driver.box)
    assert not [line for line in driver.lines if line.startswith("event lost")]


def test_a_driver_that_is_killed_leaves_no_job_and_no_process(driver: Driver) -> None:
    workers = driver.workers()
    os.kill(driver.pid(), signal.SIGKILL)
    awaited(lambda: is_free(driver.box), "its job is held")
    awaited(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers.values()), "runs on")


def test_a_job_that_is_cancelled_from_outside_ends_the_slice(driver: Driver) -> None:
    job = driver.line("held").split()[1]
    driver.workers()
    driver.box.run("scancel", job)
    driver.line("freed")
    said = "\n".join(driver.lines)
    assert "event ended  early: " in said
    assert "failed SliceFreed" in said or "killed by signal 15" in said
    assert is_free(driver.box)


def test_a_node_that_is_set_down_is_lost(driver: Driver) -> None:
    driver.workers()
    driver.box.run("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
    assert "n1" in driver.line("event lost")
    driver.let_go()
    assert driver.end() == ALL


def test_a_controller_that_is_gone_stops_no_run_and_freeing_raises_nothing(driver: Driver) -> None:
    driver.workers()
    for pid in processes_of(driver.box.folder):
        if b"slurmctld" in read_of(pid, "cmdline").split(b"\0")[0]:
            os.kill(pid, signal.SIGKILL)
    driver.let_go()
    assert driver.end() == ALL


def test_a_node_that_is_drained_goes_on_until_it_is_freed(driver: Driver) -> None:
    driver.workers()
    driver.box.run("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=test")
    driver.let_go()
    assert driver.end() == ALL
    awaited(lambda: is_free(driver.box), "its job is held")
