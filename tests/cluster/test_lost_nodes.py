"""Nodes whose power fails, or whose link does, while a command runs there.

Slurm itself would notice it after its SlurmdTimeout, long after these tests have given up; Grid
Engine never does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS, comes

from .box import Box
from .grid import Grid
from .test_box import pids, read_of

LOSES = Path(__file__).with_name("loses.py")
SLURM = {"kind": "slurm", "nodes": 2}
GRID = {"kind": "sge", "nodes": 2, "queue": "main.q", "pe": "nodes"}


class Program:
    """It runs a command on one of two nodes."""

    def __init__(self, box: Box, keys: dict[str, object], way: str, *once: str) -> None:
        self.box = box
        words = (sys.executable, str(LOSES), str(box.shared), way, json.dumps(keys), *once)
        self.process = subprocess.Popen(
            (*box.enter, *words),
            env={**os.environ, **box.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def held(self) -> list[str]:
        assert self.process.stdout
        return self.process.stdout.readline().split()[1:]

    def nodes(self, file: str = "began") -> list[str]:
        """Those that have written into it."""
        path = self.box.folder / "content" / file
        return path.read_text().split() if path.exists() else []

    def began(self, count: int) -> list[str]:
        """The nodes on which it began, once they are so many, and are watched."""
        assert comes(lambda: len(self.nodes()) >= count), self.end()
        nodes = self.nodes()
        assert comes(lambda: set(nodes) <= set(self.nodes("answered"))), self.end()
        return nodes

    def runs_on(self, node: str) -> list[int]:
        """The processes of its command there."""
        return [
            pid
            for pid in pids()
            if str(self.box.shared).encode() in (words := read_of(pid, "cmdline"))
            if words.startswith(b"sh\0-c\0")
            if f"SLURMD_NODENAME={node}\0".encode() in read_of(pid, "environ")
        ]

    def let_go(self) -> None:
        (self.box.folder / "content/go").touch()

    def end(self) -> list[str]:
        """What it said."""
        try:
            return self.process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()
        except subprocess.TimeoutExpired:
            self.process.kill()
            return [*self.process.communicate()[0].splitlines(), "it hangs"]


@contextmanager
def running(box: Box, keys: dict[str, object], *words: str) -> Iterator[Program]:
    with box:
        program = Program(box, keys, *words)
        try:
            yield program
        finally:
            program.process.kill()
            program.process.wait()


def slurm() -> Box:
    return Box(apart=True, conf="SlurmdTimeout=300\n")


@pytest.mark.parametrize(
    ("way", "fault"),
    [("run", "stop"), ("map", "unplug"), ("submit", "stop"), ("arun", "unplug")],
)
def test_a_command_whose_node_is_gone_runs_on_another_before_slurm_knows(
    way: str, fault: str
) -> None:
    with running(slurm(), SLURM, way) as program:
        (lost,) = program.began(1)
        program.box.act(fault, lost)
        assert program.began(2) == [lost, other_than(lost)]
        program.let_go()
        why = f"lost {lost} no way to its slurmd: it does not answer"
        assert program.end() == ["held n1 n2", why, "result ['end 7 2\\n']", "freed"]


def test_what_a_node_still_runs_is_ended_when_its_link_is_back_and_has_no_effect() -> None:
    with running(slurm(), SLURM, "run") as program:
        (lost,) = program.began(1)
        assert program.runs_on(lost)
        program.box.act("unplug", lost)
        other = program.began(2)[1]
        assert program.runs_on(other)
        program.box.act("plug", lost)
        assert comes(lambda: not program.runs_on(lost))
        program.let_go()
        assert "result ['end 7 2\\n']" in program.end()
        assert program.nodes("done") == [other]


def test_a_command_that_is_not_requeued_is_told_with_the_node_that_it_was_lost_with() -> None:
    with running(slurm(), SLURM, "run", "once") as program:
        (lost,) = program.began(1)
        program.box.act("stop", lost)
        *_, failed, freed = program.end()
        assert failed.startswith("failed ")
        assert f"node {lost} is lost" in failed
        assert freed == "freed"
        assert program.nodes() == [lost]


def test_an_item_of_grid_engine_whose_node_is_gone_runs_on_the_other() -> None:
    """The one that is left has to be the first: with that one its job ends."""
    with running(Grid(), GRID, "both") as program:
        first, lost = program.held()
        assert sorted(program.began(2)) == sorted((first, lost))
        program.box.act("unplug", lost)
        program.let_go()
        said = program.end()
        assert len(said) == 3, said
        why, result, freed = said
        assert why == f"lost {lost} no way to its execd: it does not answer"
        assert result in [
            "result [['end 7\\n'], ['end 8 2\\n']]",
            "result [['end 7 2\\n'], ['end 8\\n']]",
        ]
        assert freed == "freed"
        assert program.nodes("done").count(first) == 2


def other_than(node: str) -> str:
    return "n2" if node == "n1" else "n1"
