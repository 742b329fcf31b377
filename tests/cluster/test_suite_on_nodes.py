"""A suite on nodes of a real Slurm, which are apart: storage clients on both, the rest on one."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flowos.operations.history import report

from .box import FLOWOS, Box

CALLS = 8
"""Where the nodes are busy, its time may be over before all is measured: the next call goes on."""

POOL = '[pools.two]\nkind = "slurm"\nnodes = 2\nshared = "{shared}"\n'
OVER = {"11": "clients", "12": "nodes"}
"""The axis of each figure that counts nodes: a client of parallel_io is on each."""

SECOND = timedelta(seconds=1)
"""Runs end at a whole one."""


@dataclass(frozen=True)
class Measured:
    """Both figures, measured by one request. steps: when those of Slurm began that were on both
    nodes."""

    figures: dict[str, dict[str, Any]]
    page: str
    shared: Path
    stay: set[Path]
    store: str
    steps: list[datetime]


@pytest.fixture(scope="module")
def measured(machines: Box, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("suite")
    (folder / "flowos.toml").write_text(POOL.format(shared=machines.shared))
    variables = {**machines.variables, "FLOWOS_CONFIG": str(folder / "flowos.toml")}
    store = f"sqlite:///{folder}/runs.db"
    words = ("measure", "--suite", "abci", "--only", ",".join(OVER), "--pool", "two", "--quick")
    files = ("--minutes", "0.2", "--store", store, "--out", str(folder / "report"))
    line = (*machines.enter, str(FLOWOS), *words, *files, "--json")
    there = {*machines.shared.iterdir()}
    found: dict[str, dict[str, Any]] = {}
    for _ in range(CALLS):
        found = {figure["number"]: figure for figure in suite(line, variables)}
        if all(levels(found[number], axis) == {"1", "2"} for number, axis in OVER.items()):
            break
    return Measured(
        figures=found,
        page=(folder / "report/suite.html").read_text(),
        shared=machines.shared,
        stay={*machines.shared.iterdir()} - there,
        store=store,
        steps=on_both(machines),
    )


def test_clients_of_storage_are_on_both_nodes(measured: Measured) -> None:
    files = measured.figures["11"]
    assert "a client on each of 1, 2, 4 .. nodes of the pool" in files["instead"]
    assert f"The storage is {measured.shared}, the shared folder of pool two" in files["instead"]
    assert levels(files, "clients") == {"1", "2"}, (files["lacking"], files["waiting"])
    assert f"{files['runs'][0]}, between n1, n2" in measured.page
    assert measured.stay == set(), "no file of a client stays"


def test_metadata_is_made_and_asked_for_by_two_processes_of_each_node(measured: Measured) -> None:
    items = measured.figures["12"]
    assert "two processes on each of 1, 2, 4 .. nodes of the pool" in items["instead"]
    found = [dict(m["case"]["levels"]) for m in items["measurements"]]
    assert {(each["nodes"], each["processes"]) for each in found} == {("1", "2"), ("2", "4")}, (
        items["lacking"],
        items["waiting"],
    )
    alone, both = (
        {each["operation"] for each in found if each["nodes"] == nodes} for nodes in ("1", "2")
    )
    assert alone == both
    assert {"file create", "file stat", "file read", "file remove"} < both
    assert f"{items['runs'][0]}, between n1, n2" in measured.page


@pytest.mark.parametrize("number", OVER)
def test_each_number_of_both_nodes_is_of_a_step_on_both(measured: Measured, number: str) -> None:
    runs = [report(run, measured.store) for run in measured.figures[number]["runs"]]
    launches = [
        {each.round for each in found.samples if each.case.level(OVER[number]) == "2"}
        for found in runs
    ]
    assert any(launches)
    for found, rounds in zip(runs, launches, strict=True):
        begin, end = map(datetime.fromisoformat, (found.run.started, found.run.ended))
        steps = [at for at in measured.steps if begin <= at <= end + SECOND]
        assert len(steps) >= len(rounds)


def suite(line: Sequence[str], variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """The figures of the suite so far. The exit code is 1 where nothing was measured."""
    done = subprocess.run(
        line, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in {0, 1}, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["figures"]
    assert done.returncode == (not any(f["measurements"] for f in found)), done.stderr
    return found


def levels(figure: dict[str, Any], axis: str) -> set[str]:
    found = (dict(m["case"]["levels"]).get(axis) for m in figure["measurements"])
    return {level for level in found if level}


def on_both(machines: Box) -> list[datetime]:
    """When steps of Slurm began that were on its two nodes, by the clock of the first."""
    logs = [(machines.folder / f"{node}.log").read_text() for node in machines.nodes]
    one, other = (re.findall(r"\[(\S+)\] launch task (StepId=\S+)", log) for log in logs)
    there = {step for _, step in other}
    return [datetime.fromisoformat(at).astimezone() for at, step in one if step in there]
