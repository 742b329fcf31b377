"""Nodes, workers, drivers and daemons that fail while a flow runs: no lost result, no held node."""

import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS, comes

from .box import Box
from .test_box import processes_of, read_of

DRIVES = Path(__file__).with_name("drives.py")


def awaited(true: Callable[[], object], what: str) -> None:
    assert comes(true), what


class Driver:
    """A program that runs items on two nodes, until `let_go`. before: words that start it."""

    def __init__(self, box: Box, requeue: str, count: int, *before: str) -> None:
        self.box = box
        self.lines: list[str] = []
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        words = (sys.executable, str(DRIVES), str(box.shared), requeue, str(count))
        self.process = subprocess.Popen(
            (*box.enter, *before, *words),
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
        return {node: pid for node in nodes for pid in self.workers_on(node)}

    def workers_on(self, node: str) -> list[int]:
        return [
            pid
            for pid in processes_of(self.box.folder)
            if read_of(pid, "cmdline").startswith(sys.executable.encode())
            if b"/stream_worker.py\0" in read_of(pid, "cmdline")
            if f"SLURMD_NODENAME={node}\0".encode() in read_of(pid, "environ")
        ]

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
    driver.line("event lost")
    driver.let_go()  # an error comes in the place of its item
    assert "node n1 is lost" in driver.line("failed WorkerLost")
    driver.line("freed")
    assert is_free(driver.box)


def test_a_worker_that_is_killed_is_told_with_its_task_and_its_node_stays(driver: Driver) -> None:
    os.kill(driver.workers()["n1"], signal.SIGKILL)
    driver.let_go()
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


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_driver_that_is_killed_after_a_node_was_lost_leaves_no_job(
    driver: Driver, node: str
) -> None:
    driver.workers()
    driver.box.act("stop", node)
    assert node in driver.line("event lost")
    os.kill(driver.pid(), signal.SIGKILL)
    awaited(lambda: is_free(driver.box), "its job is held")


def test_a_job_that_is_cancelled_from_outside_ends_the_slice(driver: Driver) -> None:
    job = driver.line("held").split()[1]
    driver.workers()
    driver.box.run("scancel", job)
    driver.line("freed")
    said = "\n".join(driver.lines)
    assert "event ended  " in said
    assert "failed SliceFreed" in said or "killed by signal 15" in said
    assert is_free(driver.box)


def test_a_node_that_is_set_down_is_lost(driver: Driver) -> None:
    driver.workers()
    driver.box.run("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
    assert "n1" in driver.line("event lost")
    driver.let_go()
    assert driver.end() == ALL


def test_a_node_that_is_lost_before_a_worker_is_there_is_passed_over() -> None:
    with Box(apart=True, conf="MessageTimeout=2\nSlurmdTimeout=300\n") as box:
        driver = Driver(box, "yes", 6)
        driver.line("held")
        box.act("stop", "n1")
        driver.let_go()
        assert driver.end() == ALL


def kill_daemon(box: Box, name: str) -> None:
    for pid in processes_of(box.folder):
        if name.encode() in read_of(pid, "cmdline").split(b"\0")[0]:
            os.kill(pid, signal.SIGKILL)


def lose_jobs(box: Box) -> None:
    kill_daemon(box, "slurmctld")
    for name in ("job_state", "job_state.old"):
        (box.folder / "state" / name).unlink(missing_ok=True)
    box.act("begin", "slurmctld")


def is_free_of_all(box: Box) -> bool:
    """As it answers; one that does not says nothing."""
    return box.run("squeue").returncode == 0 and is_free(box)


@pytest.mark.parametrize("daemon", ["slurmctld", "munged"])
def test_a_controller_or_munge_that_is_gone_stops_no_run_and_the_job_ends_when_it_is_back(
    driver: Driver, daemon: str
) -> None:
    driver.workers()
    kill_daemon(driver.box, daemon)
    driver.let_go()
    assert driver.end() == ALL
    driver.box.act("begin", daemon)
    awaited(lambda: is_free_of_all(driver.box), "its job is held")


def test_a_controller_that_has_lost_its_state_does_not_know_the_job(driver: Driver) -> None:
    """As one that is killed within a second after the nodes were held."""
    driver.line("held")
    lose_jobs(driver.box)
    assert re.search("Invalid job id|the slice has ended", driver.line("failed"))
    driver.line("freed")
    awaited(lambda: is_free_of_all(driver.box), "a job is there")


def test_a_job_that_waits_and_that_its_controller_has_lost_is_said_to_be(driver: Driver) -> None:
    driver.workers()
    second = Driver(driver.box, "yes", 2)
    second.line("event waiting")
    lose_jobs(driver.box)
    assert "Slurm does not know the job any more" in second.line("refused")
    assert second.process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("daemon", ["slurmctld", "munged"])
def test_a_driver_that_is_killed_while_slurm_does_not_answer_holds_no_node_once_it_does(
    driver: Driver, daemon: str
) -> None:
    driver.workers()
    kill_daemon(driver.box, daemon)
    os.kill(driver.pid(), signal.SIGKILL)
    driver.process.wait(PATIENCE_SECONDS)
    driver.box.act("begin", daemon)
    awaited(lambda: is_free_of_all(driver.box), "its job is held")


def test_a_node_that_is_drained_goes_on_until_it_is_freed(driver: Driver) -> None:
    driver.workers()
    driver.box.run("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=test")
    driver.let_go()
    assert driver.end() == ALL
    awaited(lambda: is_free(driver.box), "its job is held")


SAYS_WHAT_IS_LEFT = ("sh", "-c", '"$@"; echo left $(squeue -ho %T) $(squeue -hs -o %i)', "")


@pytest.mark.parametrize(
    ("driver", "steps"),
    [
        (("yes", 6, "salloc", "--nodes=2", *SAYS_WHAT_IS_LEFT), 0),
        (("yes", 6, "salloc", "--nodes=2", "srun", "-N1", "-n1", *SAYS_WHAT_IS_LEFT), 1),
    ],
    indirect=["driver"],
)
def test_within_a_job_of_the_login_node_or_of_its_first_node_its_nodes_are_used_and_kept(
    driver: Driver, steps: int
) -> None:
    job = driver.line("held ")
    assert job == f"held {driver.box.ask('squeue', '--noheader', '--format=%A')}"
    driver.workers()
    driver.let_go()
    assert driver.line("results") == ALL
    left = driver.line("left ").split()[1:]
    assert (left[0], len(left)) == ("RUNNING", 1 + steps), left


@pytest.mark.parametrize(
    "driver",
    [("yes", 6, "salloc", "--nodes=2", "sh", "-c", '"$@"; sleep 1000', "")],
    indirect=True,
)
def test_a_driver_that_is_killed_within_a_job_leaves_no_process_and_the_job(
    driver: Driver,
) -> None:
    workers = driver.workers()
    os.kill(driver.pid(), signal.SIGKILL)
    awaited(lambda: driver.box.ask("squeue", "--noheader", "--steps") == "", "a step runs on")
    awaited(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers.values()), "runs on")
    assert driver.box.ask("squeue", "--noheader", "--format=%T") == "RUNNING"


@contextmanager
def twice(box: Box, python: Path = Path(sys.executable)) -> Iterator["subprocess.Popen[str]"]:
    """It runs a flow on the pool, and, after a line, another one."""
    words = (*box.enter, str(python), str(DRIVES.with_name("runs_twice.py")), str(box.shared))
    env = {**os.environ, **box.variables, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True) as runs:
        yield runs
        if runs.stdin and not runs.stdin.closed:
            runs.communicate("\n", PATIENCE_SECONDS)
    awaited(lambda: is_free(box), "its job is held")


def test_a_python_that_a_node_does_not_see_is_said_with_the_node(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(Path(sys.executable).resolve())
    with Box(apart=True) as box, twice(box, python) as runs:
        assert runs.stdout
        assert runs.stdout.readline() == (
            "failed LaunchFailed task 'double': a worker process could not start on node n1, which "
            f"has to see {python}, the Python of this program: no such command '{python}'\n"
        )


TOO_OLD = '[ "$1" = -c ] && echo 3.6 || { echo SyntaxError >&2; exit 1; }'
"""It cannot read the worker's file."""
OTHER = f"""\
while [ "$1" != -u ]; do shift; done; shift
exec {sys.executable} -u -c '
import runpy, sys
from os.path import dirname
sys.argv, sys.path, sys.version_info = sys.argv[1:], [dirname(sys.argv[1]), *sys.path], (3, 6)
runpy.run_path(sys.argv[0], run_name="__main__")
' "$@"
"""
"""It runs the worker, which says its version."""


@pytest.mark.parametrize("there", [TOO_OLD, OTHER])
def test_another_python_of_a_node_under_the_same_path_is_said_with_both_versions(
    there: str,
) -> None:
    with Box(apart=True) as box, tempfile.TemporaryDirectory(dir="/tmp") as own:
        python = Path(own, "python")
        python.symlink_to(Path(sys.executable).resolve())
        for node in box.nodes:
            other = box.folder / node / python.relative_to("/")
            other.parent.mkdir()
            other.write_text(f"#!/bin/sh\n{there}\n")
            other.chmod(0o755)
        ours = ".".join(map(str, sys.version_info[:2]))
        with twice(box, python) as runs:
            assert runs.stdout
            assert runs.stdout.readline() == (
                f"failed LaunchFailed task 'double': the worker on node n1 is Python 3.6, this is "
                f"{ours}: {python} has to be the same file on both sides\n"
            )


@pytest.mark.parametrize("driver", [("submit", 4)], indirect=True)
def test_runs_that_were_submitted_begin_anew_when_their_node_is_lost(driver: Driver) -> None:
    driver.workers()
    driver.box.act("stop", "n1")
    driver.line("event lost")
    driver.let_go()
    assert driver.end() == "results 4 lost 0"
