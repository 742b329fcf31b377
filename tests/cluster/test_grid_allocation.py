"""Nodes of a Grid Engine are held by a keeper, and freed however it ends."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flowos.engine import cancel_sge_jobs
from flowos.engine.launch._session import LaunchSession
from flowos.engine.sge._allocation import SgeAllocation, allocate
from flowos.model import Ask, Pool, SliceRefused
from tests.waiting import PATIENCE_SECONDS, comes

from .grid import Grid
from .test_allocation import GROUPS, ours_of
from .test_box import processes_of, read_of

POOL = Pool(name="c", kind="sge", nodes=2, cores=4, queue="main.q", pe="nodes")
SESSION = LaunchSession()

KEEPER = b"-c\0import base64, zlib;"
HOLDS = """
from flowos.engine.launch._session import LaunchSession
from flowos.engine.sge._allocation import allocate
from flowos.model import Ask, Pool
pool = Pool(name="c", kind="sge", nodes=2, cores=4, queue="main.q", pe="nodes")
held = allocate(LaunchSession(), pool, Ask(nodes=2), str, 4.0)
print("held", *sorted(node.name for node in held.nodes), flush=True)
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
    if not comes(lambda: grid.ask("qstat", "-u", "*") == ""):
        found = grid.ask("qstat", "-u", "*")
        grid.run("qdel", "-u", "*")  # for the tests that follow
        pytest.fail(f"nodes are not freed: {found}")


def hold(nodes: int = 2, pool: Pool = POOL) -> SgeAllocation:
    return allocate(SESSION, pool, Ask(nodes=nodes), print)


@pytest.fixture
def held() -> Iterator[SgeAllocation]:
    held = hold()
    yield held
    held.free()


def test_nodes_are_held_until_they_are_freed(grid: Grid) -> None:
    held = hold()
    assert sorted(node.name for node in held.nodes) == ["n1", "n2"]
    assert held.ended() is None
    assert held.job in grid.ask("qstat", "-u", "*").split()
    held.free()
    held.free()
    assert held.ended()


def test_nodes_stay_held_for_longer_than_a_keeper_bears_silence() -> None:
    for silence in (1.0, 4.0, 16.0):  # a busy machine is silent for long
        held = allocate(SESSION, POOL, Ask(nodes=1), print, silence_seconds=silence)
        stayed = held.ended(3 * silence) is None
        held.free()
        if stayed:
            break
    assert stayed


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


def test_a_job_that_is_deleted_while_it_waits_is_waited_for_no_more(held: SgeAllocation) -> None:
    assert held.ended() is None
    with pytest.raises(SliceRefused, match="its job was deleted as it waited"):
        allocate(SESSION, POOL, Ask(nodes=1, id="c-1"), lambda _: cancel_sge_jobs("c-1"))


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


def test_a_job_that_cannot_be_ended_leaves_no_keeper(
    grid: Grid, held: SgeAllocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grid Engine may fail without a word, as when another one ends the job at the same time."""
    (tmp_path / "qdel").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "qdel").chmod(0o755)
    failed: list[object] = []
    with monkeypatch.context() as fails:
        fails.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        fails.setattr(threading, "excepthook", failed.append)
        held.watch(lambda *_: None, lambda _: held.free())
        grid.run("qdel", held.job)
        assert comes(lambda: not any("(keep)" in each.name for each in threading.enumerate()))
        assert not held._first.lifeline.is_open
        with pytest.raises(SliceRefused, match=r"^qdel: exit code 1$"):
            held.free()
    assert not failed


def test_what_another_program_holds_is_ended_by_its_name() -> None:
    held = allocate(SESSION, POOL, Ask(nodes=1, id="c-1"), print)
    cancel_sge_jobs("c-2")
    assert held.ended(0.5) is None
    cancel_sge_jobs("c-1")
    assert held.ended(PATIENCE_SECONDS)
    held.free()


def test_nodes_are_freed_when_their_qrsh_is_killed(grid: Grid, held: SgeAllocation) -> None:
    words = {p: read_of(p, "cmdline") for p in processes_of(grid.folder)}
    qrshs = [p for p in words if b"qrsh\0" in words[p][:40]]
    task, hold = sorted(qrshs, key=lambda p: b"-inherit" not in words[p])
    lost = queue.SimpleQueue[str]()
    held.watch(lambda name, why: lost.put(f"{name}: {why}"), lost.put)
    _, other = held.nodes
    os.kill(task, signal.SIGKILL)
    assert lost.get(timeout=PATIENCE_SECONDS) == f"{other.name}: its keeper ended"
    assert held.ended() is None
    os.kill(hold, signal.SIGKILL)
    assert held.ended(PATIENCE_SECONDS)
    await_free(grid)


def test_a_keeper_whose_node_is_lost_without_a_word_is_given_up(grid: Grid) -> None:
    held = allocate(SESSION, POOL, Ask(nodes=1), print, silence_seconds=4.0)
    (node,) = (kept.name for kept in held.nodes)
    grid.act("unplug", node)
    try:
        assert held.ended(PATIENCE_SECONDS) == f"node {node} does not answer"
    finally:
        grid.act("plug", node)
    held.free()


def test_nodes_stay_when_another_one_is_lost(grid: Grid) -> None:
    held = allocate(SESSION, POOL, Ask(nodes=2), print, silence_seconds=4.0)
    first, other = (kept.name for kept in held.nodes)
    lost = queue.SimpleQueue[str]()
    held.watch(lambda name, why: lost.put(f"{name}: {why}"), lost.put)
    grid.act("unplug", other)
    try:
        said = lost.get(timeout=PATIENCE_SECONDS)
        assert said == f"{other}: node {other} does not answer"
        assert [kept.name for kept in held.nodes] == [first]
        assert held.ended() is None
    finally:
        grid.act("plug", other)
        held.free()
    assert lost.empty()


def test_nodes_are_freed_while_grid_engine_itself_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    with Grid() as own:
        for name, value in own.outside.items():
            monkeypatch.setenv(name, value)
        held = hold()
        keepers = [p for p in processes_of(own.folder) if KEEPER in read_of(p, "cmdline")]
        assert keepers
        (master,) = [p for p in processes_of(own.folder) if b"qmaster" in read_of(p, "cmdline")]
        os.kill(master, signal.SIGKILL)
        assert held.ended(1.0) is None
        held.free()
        assert held.ended()
        assert comes(lambda: not any(KEEPER in read_of(p, "cmdline") for p in keepers))


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
