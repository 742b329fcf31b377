"""Slices of a real Slurm that outlive their programs: attached to, renewed, freed, over."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowos.model import SliceRefused
from flowos.operations.slices import renew, slice_named, slices
from tests.waiting import comes

from .box import Box
from .in_process import flowos
from .test_box import read_of

PROGRAM = """
import os, sys
import flowos as fo

@fo.task
def add(x: fo.int64) -> fo.int64:
    return x + 1

flow = fo.flow_output(add(fo.flow_input("x", fo.int64)))
{0}
"""
HOLDS = """
s = fo.slice(pool="c", nodes=2, lease_seconds={0})
print(s.held.id, s.run(flow, 1)[0], flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cluster(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is left of a test is nothing: no job, no process that holds one."""
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    lines = ("[pools.c]", 'kind = "slurm"', "nodes = 2", f'shared = "{box.shared}"')
    Path("flowos.toml").write_text("\n".join((*lines, "")))
    yield
    comes(lambda: box.ask("squeue", "--noheader") == "")
    comes(lambda: not holders(box))


def holders(box: Box) -> list[int]:
    """The processes that hold nodes of it."""
    return [
        pid
        for pid in (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
        if b"/leases/c-" in read_of(pid, "cmdline")
        if str(box.folder).encode() in read_of(pid, "environ")
    ]


def start(program: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    words = (sys.executable, "-c", PROGRAM.format(program))
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def held(seconds: float) -> "tuple[subprocess.Popen[str], str]":
    """A program that holds two nodes, and the id of its slice."""
    program = start(HOLDS.format(seconds))
    assert program.stdout
    said = program.stdout.readline().split()
    assert said[1:] == ["2"], program.communicate()
    return program, said[0]


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return flowos("slice", *words)


def record(id: str) -> Any:
    return json.loads(run("show", id, "--json").stdout)


def kill(program: "subprocess.Popen[str]") -> None:
    program.send_signal(signal.SIGKILL)
    program.communicate()


def test_a_slice_outlives_its_program_and_is_used_by_the_next(box: Box) -> None:
    program, id = held(300)
    kill(program)
    job = box.ask("squeue", "--noheader", "--format=%A")
    assert (record(id)["state"], record(id)["jobs"]) == ("held", [job])
    attach = f's = fo.attach("{id}")\nprint(s.nodes, s.run(flow, 2))\ns.free()'
    out, err = start(attach).communicate()
    assert (out, err) == ("('n1', 'n2') [3]\n", "")
    assert box.ask("squeue", "--noheader") == ""
    (found,) = json.loads(run("ls", "--json").stdout)
    assert (found["state"], found["jobs"], len(found["nodes"])) == ("freed", [job], 2)
    assert [event["what"] for event in found["events"]] == ["held", "held", "freed"]
    _, err = start(f'fo.attach("{id}")').communicate()
    assert f"SliceRefused: slice {id} is over: freed" in err


def test_a_lease_that_no_program_renews_ends_the_job(box: Box) -> None:
    program, id = held(6)
    time.sleep(7)  # renewed by the program
    assert box.ask("squeue", "--noheader", "--format=%T") == "RUNNING"
    assert program.stdin
    program.stdin.close()  # it ends in order, and does not free
    program.wait()
    ended = time.monotonic()
    still = box.ask("squeue", "--noheader", "--format=%T")
    assert still == "RUNNING" or time.monotonic() - ended > 5
    assert comes(lambda: slice_named(id).state == "over")
    assert record(id)["events"][-1]["reason"] == "its program ended, and its lease of 6 s"
    assert program.stderr
    assert program.stderr.read() == ""
    program.stdout.close() if program.stdout else None
    program.stderr.close()
    refused = run("attach", id)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "is over: its program ended" in refused.stderr


def test_a_lease_is_renewed_and_its_slice_freed_from_another_terminal(box: Box) -> None:
    program, id = held(300)
    kill(program)
    said = run("attach", id, "--seconds", "600", "--dry-run").stdout
    assert said == f"n1, n2 of pool c would be held for 600 s, for fo.attach('{id}')\n"
    for words in (("--seconds", "600"), ()):
        renewed = json.loads(run("attach", id, *words, "--json").stdout)
        assert renewed["lease_seconds"] == 600
    too_long = run("attach", id, "--seconds", "99999999999")
    says = "argument --seconds: 99999999999: expected a number above 0 and below 1e9"
    assert (too_long.returncode, says in too_long.stderr) == (2, True)
    with pytest.raises(SliceRefused, match=f"{id}: lease_seconds=1000.*; expected a number"):
        renew(id, 1e11)
    assert run("free", id).stdout.startswith(f"freed {id} whose program is gone")
    comes(lambda: box.ask("squeue", "--noheader") == "")


JUDGES = """
@fo.task(needs=fo.Needs(remaining_seconds=600))
def long(x: fo.int64) -> fo.int64:
    return x

late = fo.flow_output(long(fo.flow_input("x", fo.int64)))
with fo.slice(pool="c", lease_seconds=60) as s:
    print(s.run(late, 1), flush=True)
s = fo.slice(pool="c", seconds=300, lease_seconds=60)
print(s.held.id, flush=True)
sys.stdin.readline()
try:
    s.run(late, 1)
except fo.SliceRefused as error:
    print(error)
s.free()
"""


def test_a_lease_that_is_renewed_moves_no_end_that_was_asked_for(box: Box) -> None:
    """Neither is a lease an end for its program, which renews it."""
    program = start(JUDGES)
    assert program.stdout
    assert program.stdout.readline() == "[1]\n"
    id = program.stdout.readline().strip()
    renewed = json.loads(run("attach", id, "--seconds", "7200", "--json").stdout)
    assert 0 < renewed["lease_seconds"] <= 300
    assert box.ask("squeue", "--noheader", "--format=%l") == "5:00"
    out, err = program.communicate("\n")
    assert (out.count("needs 600 s until its nodes are given back"), err) == (1, "")


USES = """
s = fo.slice(pool="c", lease_seconds=300)
id = s.held.id
s.leave()
try:
    s.nodes
except fo.SliceFreed as error:
    print(error)
with fo.attach(id) as s:
    try:
        s.resize(2)
    except fo.SliceRefused as error:
        print(s.nodes, error)
with fo.slice(pool="c") as s:
    for refused in (s.leave, lambda: fo.attach(s.held.id)):
        try:
            refused()
        except fo.SliceRefused as error:
            print(error)
"""


def test_a_program_goes_on_with_what_it_left_and_with_nothing_else() -> None:
    out, err = start(USES).communicate()
    left, grown, *refused = out.splitlines()
    assert err == ""
    assert left == "the slice was left to its lease: fo.attach(ID) uses it again"
    assert grown.startswith("('n1',) slice c-")
    assert grown.endswith("it has a lease, and gets no more nodes")
    assert [line.split(" ", 2)[2] for line in refused] == [
        "has no lease: give lease_seconds",
        "has no lease",
    ]


def test_a_slice_that_a_program_uses_is_not_attached_to() -> None:
    program, id = held(300)
    _, err = start(f'fo.attach("{id}")').communicate()
    assert "which still runs" in err.splitlines()[-1]
    assert run("free", id).stdout.startswith(f"freed {id} of p-")
    program.communicate("")


def test_nodes_are_freed_with_the_process_that_holds_them(box: Box) -> None:
    program, id = held(300)
    (holder,) = holders(box)
    os.kill(holder, signal.SIGKILL)
    comes(lambda: box.ask("squeue", "--noheader") == "")
    assert comes(lambda: slice_named(id).state == "lost")
    gone = "the process that holds its nodes is gone"
    assert record(id)["events"][-1]["reason"] == gone
    program.communicate("")


def test_a_job_that_is_cancelled_while_it_waits_is_said_to_be(box: Box) -> None:
    program, id = held(300)
    waits = start('fo.slice(pool="c")')
    pending = ("squeue", "--noheader", "--states=PD", "--format=%A")
    assert comes(lambda: box.ask(*pending))
    box.ask("scancel", box.ask(*pending).strip())
    said = waits.communicate()[1]
    run("free", id)
    program.communicate("")
    assert said.endswith("its job was cancelled while it waited\n")


def test_what_waits_says_why_and_is_given_up(box: Box) -> None:
    program, id = held(300)
    waits = start('fo.slice(pool="c", lease_seconds=2)')
    assert comes(lambda: slices().found[0].waits(time.time()))
    newest = json.loads(run("ls", "--json").stdout)[0]
    assert (newest["state"], newest["waits"][0]["reason"]) == ("waiting", "Resources")
    kill(waits)
    comes(lambda: box.ask("squeue", "--noheader", "--states=PD") == "")
    run("free", id)
    program.communicate("")
