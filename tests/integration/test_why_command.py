"""`flowos why`, of programs that run in another terminal."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_SECONDS, ended

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[[str], "subprocess.Popen[str]"]
FLOW = """
import os, sys, time
from pathlib import Path
import flowos as fo

@fo.task
def slow(x: fo.int64) -> fo.int64:
    while not Path("go").exists():
        time.sleep(0.01)
    return x

@fo.task
def after(x: fo.int64) -> fo.int64:
    return x

flow = fo.flow_output(after(slow(fo.flow_input("x", fo.int64))))
"""

POOLS = """
[pools.slow]
kind = "fake"
[pools.one]
kind = "fake"
[pools.two]
kind = "fake"
nodes = 2
cores = 1
[pools.fpga]
kind = "fake"
cores = 4
gres = "fpga:1"
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Begins programs with a data folder of their own; they end with the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "flowos.toml").write_text(POOLS)
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    monkeypatch.chdir(tmp_path)
    programs: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        words = [sys.executable, "-c", FLOW + textwrap.dedent(program)]
        started = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        programs.append(started)
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        return started

    yield start
    ended(programs)


def tasks(flowos: Flowos, name: str) -> list[tuple[str, str, str, int]]:
    """None as long as no task of this name runs or waits."""
    said = flowos("why", name, "--json", codes=(0, 2)).stdout
    answers = json.loads(said) if said else []
    return [(t["task"], t["state"], t["why"], t["number"]) for a in answers for t in a["tasks"]]


def comes(found: Callable[[], Any], what: Any) -> None:
    until = time.monotonic() + 2 * PATIENCE_SECONDS
    while (now := found()) != what:
        assert time.monotonic() < until, now
        time.sleep(0.02)


def test_tasks_that_wait_say_for_what(start: Start, flowos: Flowos) -> None:
    cores = len(os.sched_getaffinity(0))
    program = start(f"""
        s = fo.slice(flow, fuse="none")
        runs = [s.submit(i) for i in range({cores + 2})]
        print("ready", flush=True)
        print(sum(run.result()[0] for run in runs))
    """)
    held = f"slow (x{cores})" if cores > 1 else "slow"
    short = f"for 1 core, 0 of {cores} are free; tasks that run: {held}"
    comes(lambda: tasks(flowos, "slow"), [("slow", "runs", "", cores), ("slow", "waits", short, 2)])
    waits = [("after", "waits", "for the result of slow", cores + 2)]
    assert tasks(flowos, "after") == waits
    (process,) = json.loads(flowos("ps", "--json").stdout)
    said = flowos("why", process["id"]).stdout
    assert f"{cores + 2} x after (flow on " in said
    missing = flowos("why", "slwo", code=2).stderr
    assert missing == (
        "flowos why: no slice, program or task 'slwo' runs or waits; did you mean 'slow'?\n"
    )
    Path("go").touch()
    assert program.communicate()[0] == f"{sum(range(cores + 2))}\n"
    assert "tasks: none" in flowos("why", "slow", code=2).stderr
    over = flowos("why", process["id"]).stdout
    assert "it is over, or answers nothing" in over


def test_a_task_that_needs_more_than_is_free_says_which_tasks_have_it(
    start: Start, flowos: Flowos
) -> None:
    start("""
        wide = fo.slice(flow, fuse="none")
        wide.submit(1)
        node = wide._executor[0]._node
        need = fo.Needs(memory_bytes=node.whole.memory_bytes // 2 + 1)

        @fo.task(needs=need)
        def big(x: fo.int64) -> fo.int64:
            while not Path("go").exists():
                time.sleep(0.01)
            return x

        s = fo.slice(fo.flow_output(big(fo.flow_input("x", fo.int64))))
        runs = [s.submit(1), s.submit(2)]
        print("ready", flush=True)
        runs[0].result()
    """)
    comes(lambda: [(t[0], t[1]) for t in tasks(flowos, "big")], [("big", "runs"), ("big", "waits")])
    (_, (_, _, why, _)) = tasks(flowos, "big")
    assert "bytes of memory" in why or " core" in why
    assert "big" in why.partition("tasks that run: ")[2]


def test_a_slice_that_is_over_hides_no_task_of_its_name(start: Start, flowos: Flowos) -> None:
    start("""
        fo.slice(pool="slow").free()
        s = fo.slice(flow, fuse="none")
        run = s.submit(1)
        print("ready", flush=True)
        run.result()
    """)
    comes(lambda: tasks(flowos, "slow"), [("slow", "runs", "", 1)])
    assert "it is over: freed" in flowos("why", "slow-").stdout


def test_slices_say_why_they_wait_or_that_they_do_not(start: Start, flowos: Flowos) -> None:
    start("""
        import threading
        first = fo.slice(flow, pool="slow")
        kept = []
        hold = lambda: kept.append(fo.slice(flow, pool="slow"))
        other = threading.Thread(target=hold, daemon=True)
        other.start()
        print("ready", flush=True)
        time.sleep(1000)
    """)

    def found() -> dict[str, str]:
        return {s["state"]: s["id"] for s in json.loads(flowos("slice", "ls", "--json").stdout)}

    comes(lambda: sorted(found()), ["held", "waiting"])
    assert "it does not wait: p-" in flowos("why", found()["held"]).stdout
    waits = flowos("why", found()["waiting"]).stdout
    assert "its pool slow said: 0 of 1 nodes are free" in waits
    flowos("slice", "free", found()["held"])
    comes(lambda: sorted(found()), ["freed", "held"])
    assert "it is over: freed, by 'flowos slice free'" in flowos("why", found()["freed"]).stdout


def test_runs_in_the_line_of_a_growing_slice_say_what_the_pool_says(
    start: Start, flowos: Flowos
) -> None:
    program = start("""
        import threading
        held = fo.slice(pool="one")
        s = fo.slice(pool="one", nodes=(0, 1), cores=1)
        runs = [s.submit(flow, 1), s.submit(flow, 2)]
        ran = []
        caller = threading.Thread(target=lambda: ran.append(s.run(flow, 4)))
        caller.start()
        print("ready", flush=True)
        sys.stdin.readline()
        held.free()
        caller.join()
        print(sum(run.result()[0] for run in runs) + ran[0][0])
    """)
    said = "for a node: the pool was asked for one, and said: 0 of 1 nodes are free"
    comes(lambda: tasks(flowos, "slow"), [("slow", "waits", said, 3)])
    assert tasks(flowos, "after") == [("after", "waits", said, 3)]
    assert f"3 x slow (flow) waits {said}\n" in flowos("why", "slow").stdout
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()
    comes(lambda: [state for _, state, _, _ in tasks(flowos, "slow")][:1], ["runs"])
    Path("go").touch()
    assert program.communicate()[0] == "7\n"


def test_items_of_a_map_that_no_node_has_say_why_none_comes(start: Start, flowos: Flowos) -> None:
    start("""
        other = fo.slice(pool="two")
        s = fo.slice(pool="two", nodes=(0, 2), cores=1, idle_seconds=100)
        print("ready", flush=True)
        list(s.map(flow, range(50)))
    """)

    def queued() -> set[str]:
        return {why for _, _, why, _ in tasks(flowos, "after") if "for a node" in why}

    comes(queued, {"for a node: the pool was asked for one, and said: 0 of 2 nodes are free"})


def test_a_slice_that_stopped_growing_says_how_to_go_on(start: Start, flowos: Flowos) -> None:
    Path("flowos.toml").write_text(
        POOLS + '[pools.less]\nkind = "fake"\nnodes = 2\ncores = 1\nscript = ["lose 1 after 0"]\n'
    )
    start("""
        s = fo.slice(pool="less", nodes=(0, 2), idle_seconds=100)
        lost = fo.slice(pool="less")
        while lost.held.nodes:
            time.sleep(0.01)
        print("ready", flush=True)
        list(s.map(flow, range(50)))
    """)
    stopped = (
        "for a node: pool less: the slice stopped growing after 3 failures in a row, the last one: "
        "pool less: 2 nodes asked for, it has 1; its resize(NODES) tries again"
    )
    comes(lambda: {why for _, _, why, _ in tasks(flowos, "after") if "stopped" in why}, {stopped})


def test_items_of_a_map_over_held_nodes_say_that_these_have_no_room(
    start: Start, flowos: Flowos
) -> None:
    start("""
        s = fo.slice(pool="two", nodes=2)
        print("ready", flush=True)
        list(s.map(flow, range(50)))
    """)
    room = "for a node: there is no room on two-1, two-2"
    comes(lambda: {why for _, _, why, _ in tasks(flowos, "after") if "for a node" in why}, {room})


def test_a_task_that_waits_for_a_device_says_which(start: Start, flowos: Flowos) -> None:
    start("""
        @fo.task(needs=fo.Needs(devices={"fpga": 1}))
        def loads(x: fo.int64) -> fo.int64:
            while not Path("go").exists():
                time.sleep(0.01)
            return x

        f = fo.flow_output(loads(fo.flow_input("x", fo.int64)))
        s = fo.slice(pool="fpga", workers="process")
        runs = [s.submit(f, 1), s.submit(f, 2)]
        print("ready", flush=True)
        runs[0].result()
    """)
    waits = "for 1 fpga, 0 of 1 are free; tasks that run: loads"
    comes(lambda: tasks(flowos, "loads"), [("loads", "runs", "", 1), ("loads", "waits", waits, 1)])
