"""Nodes of a Grid Engine are held by a keeper, and freed however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from flowos.engine.launch._session import LaunchSession
from flowos.engine.sge._allocation import SgeAllocation, allocate, find
from flowos.model import Ask, Lost, Pool, SliceRefused

from .grid import Grid
from .test_allocation import GROUPS, ours_of
from .test_box import PATIENCE_SECONDS, processes_of, read_of

POOL = Pool(name="c", kind="sge", nodes=2, cores=4, queue="main.q", pe="nodes")
SESSION = LaunchSession()

HOLDS = """
from flowos.engine.launch._session import LaunchSession
from flowos.engine.sge._allocation import allocate
from flowos.model import Ask, Pool
pool = Pool(name="c", kind="sge", nodes=2, cores=4, queue="main.q", pe="nodes")
held = allocate(LaunchSession(), pool, Ask(nodes=2), str, 4.0)
print("held", *sorted(held.nodes), flush=True)
input()
"""


@pytest.fixture(autouse=True)
def cluster(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is left of a test is nothing."""
    for name, value in grid.outside.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JOB_ID", "999999")  # of a job around us
    await_free(grid)
    yield
    await_free(grid)


def await_free(grid: Grid) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while found := grid.ask("qstat", "-u", "*"):
        if time.monotonic() > until:
            grid.run("qdel", "-u", "*")  # for the tests that follow
            pytest.fail(f"nodes are not freed: {found}")
        time.sleep(0.05)


def hold(nodes: int = 2, pool: Pool = POOL) -> SgeAllocation:
    return allocate(SESSION, pool, Ask(nodes=nodes), print)


@pytest.fixture
def held() -> Iterator[SgeAllocation]:
    held = hold()
    yield held
    held.free()


def test_nodes_are_held_until_they_are_freed(grid: Grid) -> None:
    held = hold()
    assert sorted(held.nodes) == ["n1", "n2"]
    assert held.ended() is None
    assert held.job in grid.ask("qstat", "-u", "*").split()
    held.free()
    held.free()
    assert held.ended()


def test_further_processes_start_on_each_node_and_end_with_the_job(
    held: SgeAllocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From out here: Grid Engine asks for the job's number alone."""
    monkeypatch.setenv("JOB_ID", held.job)
    monkeypatch.setenv("SGE_TASK_ID", "undefined")
    for node in held.nodes:
        words = ("qrsh", "-inherit", "-noshell", node, "sh", "-c", "hostname; cat; exit 5")
        done = subprocess.run(words, input="in\n", capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()) == (5, [node, "in"])
    words = ("qrsh", "-inherit", "-noshell", held.nodes[1], "sh", "-c", "echo up; sleep 1000")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as task:
        assert task.stdout
        assert task.stdout.readline() == "up\n"
        held.free()
        task.communicate(timeout=PATIENCE_SECONDS)


def test_what_is_held_is_found_by_its_number_with_its_nodes_until_it_is_freed(
    held: SgeAllocation,
) -> None:
    found = find(held.job)
    assert not isinstance(found, Lost)
    assert (found.name, found.phase, found.nodes) == (held.name, "running", held.nodes)
    held.free()
    assert comes_to_lost(held.job)


def comes_to_lost(job: str) -> bool:
    """The job is a while on its way out of the queue."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not isinstance(find(job), Lost):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_nodes_stay_held_for_longer_than_a_keeper_bears_silence() -> None:
    held = allocate(SESSION, POOL, Ask(nodes=1), print, silence_seconds=1.0)
    assert held.ended(3.0) is None
    held.free()


def test_while_it_waits_grid_engine_says_why(grid: Grid) -> None:
    grid.run(
        "qsub", "-N", "other", "-b", "y", "-o", "/dev/null", "-pe", "nodes", "8", "sleep", "99"
    )
    reasons = []

    def on_waiting(reason: str) -> None:
        reasons.append(reason)
        grid.run("qdel", "other")

    held = allocate(SESSION, POOL, Ask(nodes=2), on_waiting)
    assert reasons[0]
    held.free()


def test_an_interrupt_while_it_waits_leaves_nothing(grid: Grid, held: SgeAllocation) -> None:
    def interrupted(reason: str) -> None:
        raise KeyboardInterrupt(reason)

    with pytest.raises(KeyboardInterrupt):
        allocate(SESSION, POOL, Ask(nodes=1), interrupted)
    assert {line.split()[0] for line in grid.ask("qstat").splitlines()[2:]} == {held.job}


@pytest.mark.parametrize(
    ("pool", "nodes", "complaint"),
    [
        (Pool(name="c", kind="sge", queue="nope", pe="nodes"), 1, 'requests unknown queue "nope"'),
        (Pool(name="c", kind="sge", queue="main.q", pe="nope"), 1, '"nope" does not exist'),
        (POOL, 3, "no suitable queues"),
        (Pool(name="c", kind="sge", cores=2, queue="main.q", pe="mixed"), 2, "slots of 1"),
    ],
)
def test_what_grid_engine_refuses_is_refused(pool: Pool, nodes: int, complaint: str) -> None:
    with pytest.raises(SliceRefused, match=complaint):
        hold(nodes, pool)


def test_an_end_that_another_asks_for_is_seen(grid: Grid, held: SgeAllocation) -> None:
    grid.run("qdel", held.job)
    assert held.ended(PATIENCE_SECONDS)


def test_nodes_are_freed_when_their_qrsh_is_killed(grid: Grid, held: SgeAllocation) -> None:
    (qrsh,) = [p for p in processes_of(grid.folder) if b"qrsh\0" in read_of(p, "cmdline")[:40]]
    os.kill(qrsh, signal.SIGKILL)
    assert held.ended(PATIENCE_SECONDS)
    await_free(grid)


def test_a_keeper_whose_node_is_lost_without_a_word_is_given_up(grid: Grid) -> None:
    held = allocate(SESSION, POOL, Ask(nodes=1), print, silence_seconds=4.0)
    (node,) = held.nodes
    grid.act("unplug", node)
    try:
        assert held.ended(PATIENCE_SECONDS) == f"node {node} does not answer"
    finally:
        grid.act("plug", node)
    held.free()


def test_nodes_are_freed_while_grid_engine_itself_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    with Grid() as own:
        for name, value in own.outside.items():
            monkeypatch.setenv(name, value)
        held = hold()
        keepers = [p for p in processes_of(own.folder) if b"flowos-keeper" in read_of(p, "cmdline")]
        assert keepers
        (master,) = [p for p in processes_of(own.folder) if b"qmaster" in read_of(p, "cmdline")]
        os.kill(master, signal.SIGKILL)
        assert held.ended(1.0) is None
        held.free()
        assert held.ended()
        until = time.monotonic() + PATIENCE_SECONDS
        while any(b"flowos-keeper" in read_of(p, "cmdline") for p in keepers):
            assert time.monotonic() < until
            time.sleep(0.02)


@pytest.mark.parametrize("signum", GROUPS)
def test_nodes_are_freed_when_their_process_dies(grid: Grid, signum: signal.Signals | None) -> None:
    words = (sys.executable, "-c", HOLDS)
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as driver:
        assert driver.stdout
        assert driver.stdout.readline() == "held n1 n2\n"
        driver.send_signal(signum or signal.SIGSTOP)
        if signum is None:
            for pid in ours_of(grid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        driver.communicate()
    await_free(grid)
