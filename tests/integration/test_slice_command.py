"""Records of slices of pools, and `flowos slice`, also of a program that runs or was killed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import ended

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = """
import os, sys, time
import flowos as fo

@fo.task
def add(x: fo.int64) -> fo.int64:
    return x + 1

flow = fo.flow_output(add(fo.flow_input("x", fo.int64)))
"""
SETTINGS = """
[pools.test]
kind = "fake"
nodes = 3
cores = 1
price = {per_node_hour = 3600.0, currency = "CHF"}
script = ["wait 0.01 Priority; lose 2 after 0.01"]

[pools.slow]
kind = "fake"
nodes = 1
"""


class Home:
    """A data folder and settings of its own."""

    def __init__(self, folder: Path, flowos: Flowos) -> None:
        self.data = folder / "data"
        (folder / "flowos.toml").write_text(SETTINGS)
        self.variables = {
            **os.environ,
            "XDG_DATA_HOME": str(self.data),
            "FLOWOS_CONFIG": str(folder / "flowos.toml"),
        }
        self.flowos = flowos
        self.programs: list[subprocess.Popen[str]] = []

    def start(self, program: str) -> "subprocess.Popen[str]":
        """A program that has printed its first line."""
        pipe = subprocess.PIPE
        words = [sys.executable, "-c", FLOW + textwrap.dedent(program)]
        started = subprocess.Popen(
            words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=self.variables,
            cwd=self.data.parent,
        )
        self.programs.append(started)
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n", started.communicate()
        return started

    def say(self, *words: str, code: int = 0) -> str:
        done = self.flowos("slice", *words, code=code)
        return done.stdout + done.stderr

    def all(self) -> list[Any]:
        return list(json.loads(self.say("ls", "--json")))


@pytest.fixture
def home(tmp_path: Path, flowos: Flowos) -> Iterator[Home]:
    home = Home(tmp_path, flowos)
    yield home
    ended(home.programs)


HOLDS = """
    s = fo.slice(flow, pool="local")
    s.run(1)
    print("ready", flush=True)
    try:
        while True:
            s.run(1)
            time.sleep(0.01)
    except fo.SliceFreed as error:
        print(error)
"""


def test_a_slice_is_recorded_with_what_it_waited_for_held_lost_and_cost(home: Home) -> None:
    assert home.all() == []
    assert "no slice of a pool yet" in home.say("ls")
    home.start("""
        lost = []
        with fo.slice(pool="test", nodes=2, on_event=lost.append, log="tasks.log") as s:
            s.run(flow, 1)
            while lost[-1].what != "lost":
                time.sleep(0.01)
            s.resize(2)
        print("ready", flush=True)
    """).communicate()
    for _ in range(2):  # from its file, which the first moves into the store; from the store
        (found,) = home.all()
        assert (found["state"], found["pool"], found["kind"]) == ("freed", "test", "fake")
        assert [event["what"] for event in found["events"]] == [
            *("waiting", "held", "lost", "resized", "freed"),
        ]
        (wait,) = found["waits"]
        assert wait["reason"] == "Priority"
        assert 0.01 <= wait["seconds"] <= found["waited_seconds"]
        assert [node["name"] for node in found["nodes"]] == ["test-1", "test-2", "test-3"]
        assert found["nodes"][1]["until"] < found["nodes"][0]["until"] == found["ended"]
        assert found["cost"] == pytest.approx(found["node_seconds"])
        assert list((home.data / "flowos/slices").iterdir()) == []
    shown = home.say("show", found["id"][:-2])
    assert "asked for 2 nodes at" in shown
    assert "for Priority\n" in shown
    assert f"cost {found['cost']:.4f} CHF" in shown
    log = home.say("log", found["id"])
    assert "node test-2: lost: the node does not answer" in log
    assert "add" in log.splitlines()[-1]
    assert len(json.loads(home.say("log", found["id"], "--json"))["tasks"]) == 1
    (process,) = json.loads(home.flowos("ps", "--json").stdout)
    assert found["id"] in home.flowos("show", process["id"]).stdout


def test_a_slice_of_a_program_that_runs_is_freed_from_another_terminal(home: Home) -> None:
    program = home.start(HOLDS)
    (found,) = home.all()
    assert (found["state"], found["ended"]) == ("held", None)
    assert "cost not known: pool local has no price" in home.say("show", found["id"])
    assert home.say("free", found["id"], "--dry-run").startswith(f"would free {found['id']} of p-")
    assert program.poll() is None
    assert home.say("free", found["id"]).startswith(f"freed {found['id']} of p-")
    out, err = program.communicate(timeout=300)
    assert out == f"slice {found['id']} was freed by 'flowos slice free', in another terminal\n"
    assert err == ""
    assert "is over already: freed (by" in home.say("free", found["id"])
    assert home.all()[0]["state"] == "freed"


def test_a_slice_of_a_program_that_was_killed_is_lost(home: Home) -> None:
    program = home.start(HOLDS)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    for _ in range(2):
        (found,) = home.all()
        assert (found["state"], found["ended"] is None) == ("lost", False)
        assert found["events"][-1]["reason"] == "its program was killed"
    assert list((home.data / "flowos/processes").iterdir()) == []


def test_a_slice_that_is_not_freed_ends_with_its_program(home: Home) -> None:
    home.start("""
        s = fo.slice(flow, pool="local")
        other = fo.slice(flow, pool="local")
        print("ready", flush=True)
        if os.fork() == 0:  # the child's slices are its own
            with fo.slice(flow, pool="local") as mine:
                mine.run(1)
            sys.exit()
        os.wait()
    """).communicate()
    assert [each["state"] for each in home.all()] == ["freed"] * 3
    assert len({each["process"] for each in home.all()}) == 2


def test_the_newest_are_listed_and_all_that_have_not_ended(home: Home) -> None:
    home.start(HOLDS)
    (oldest,) = home.all()
    home.start("""
        for _ in range(24):
            with fo.slice(flow, pool="slow"):
                pass
        print("ready", flush=True)
    """)
    lines = home.say("ls").splitlines()
    assert len(lines) == 22
    assert f"{oldest['id']} " in lines[20]
    assert lines[-1] == "and 4 that ended before: flowos slice ls --limit 25"
    assert len(home.all()) == 25
    assert len(home.say("ls", "--limit", "25").splitlines()) == 25
    assert len(home.say("ls", "--limit", "3").splitlines()) == 3


def test_what_the_pool_refuses_is_recorded_with_why(home: Home) -> None:
    home.start("""
        try:
            fo.slice(flow, pool="slow", nodes=2)
        except fo.SliceRefused:
            print("ready", flush=True)
    """).communicate()
    (found,) = home.all()
    assert (found["state"], found["nodes"], found["cost"]) == ("refused", [], None)
    assert "2 nodes asked for, it has 1" in home.say("ls")


def test_a_slice_that_waits_is_not_freed_where_no_job_waits_for_it(home: Home) -> None:
    program = home.start("""
        first = fo.slice(flow, pool="slow")
        print("ready", flush=True)
        fo.slice(flow, pool="slow")
    """)
    while len(home.all()) < 2:
        time.sleep(0.01)
    waits = home.all()[0]
    assert waits["waits"][0]["reason"] == "0 of 1 nodes are free"
    would = home.say("free", waits["id"], "--dry-run")
    assert would.endswith(", without a node yet: 1 node of pool slow\n")
    said = home.say("free", waits["id"], code=1)
    assert f"its program (pid {program.pid} on" in said
    assert "waits for nodes: interrupt it" in said


def test_jobs_are_shown_as_those_of_slurm(home: Home) -> None:
    home.start(HOLDS)
    (record,) = home.data.rglob("slices/p-*.jsonl")
    found = json.loads(record.read_text().splitlines()[-1])
    with record.open("a") as file:
        ended = {"id": "gpu-1", "kind": "slurm", "state": "freed", "jobs": ["4"], "ended": 1e9}
        file.write(json.dumps({**found, **ended}) + "\n")
    assert "\n  Slurm job 4\n" in home.say("show", "gpu-1")


BAD_LINES = (b'{"id":' * 2000, b"[]", b"null", b'{"a":1}', b"\xff\x00", b"7")


def test_lines_of_a_record_that_are_no_slice_are_passed_over(home: Home) -> None:
    home.start(HOLDS)
    (found,) = home.all()
    (record,) = home.data.rglob("p-*.jsonl")
    with record.open("ab") as file:
        file.write(b"\n".join((*BAD_LINES, b"")))
    assert [each["id"] for each in home.all()] == [found["id"]]


def test_a_slice_of_a_time_that_does_not_exist_is_shown(home: Home) -> None:
    home.start(HOLDS)
    (record,) = home.data.rglob("p-*.jsonl")
    begun = record.read_text()
    found = json.loads(begun.splitlines()[0])
    for asked in (1e300, float("inf"), float("nan"), -1e300):
        old = json.dumps({**found, "id": "old-1", "asked": asked})
        record.write_text(f"{begun}{old}\n")
        for words in (("ls",), ("ls", "--json"), ("show", "old-1"), ("log", "old-1")):
            assert home.say(*words), asked


def test_an_empty_id_is_of_no_slice(home: Home) -> None:
    home.start(HOLDS)
    for words in (("slice", "free"), ("slice", "attach"), ("why",)):
        said = home.flowos(*words, "", code=2).stderr
        assert said == f"flowos {words[0]}: slice '': its id is empty: is a variable unset?\n"
    assert [each["state"] for each in home.all()] == ["held"]


def test_an_unknown_id_is_one_line_with_the_nearest(home: Home) -> None:
    assert home.say("show", "x", code=2) == (
        "flowos slice: no slice 'x': none is kept; see 'flowos slice ls'\n"
    )
    home.start(HOLDS)
    (found,) = home.all()
    for verb in ("show", "free", "log"):
        said = home.say(verb, found["id"][:-1] + "_", code=2)
        assert f"did you mean {found['id']!r}?" in said
        assert said.count("\n") == 1


def test_a_program_that_cannot_write_runs_all_the_same(home: Home) -> None:
    home.data.write_text("no folder")
    program = home.start("""
        with fo.slice(flow, pool="local") as s:
            assert s.run(1) == [2]
        print("ready", flush=True)
    """)
    assert program.communicate() == ("", "")
