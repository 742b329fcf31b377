"""A suite on nodes of a real Slurm, which are apart: storage clients on both, the rest on one."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .box import FLOWOS, Box

CALLS = 8
"""Where the nodes are busy, its time may be over before all is measured: the next call goes on."""

POOL = '[pools.two]\nkind = "slurm"\nnodes = 2\nshared = "{shared}"\n'


def test_clients_of_storage_are_on_both_nodes(machines: Box, tmp_path: Path) -> None:
    (tmp_path / "flowos.toml").write_text(POOL.format(shared=machines.shared))
    variables = {**machines.variables, "FLOWOS_CONFIG": str(tmp_path / "flowos.toml")}
    store = ("--store", f"sqlite:///{tmp_path}/runs.db", "--out", str(tmp_path / "report"))
    words = ("measure", "--suite", "abci", "--only", "11", "--pool", "two", "--quick")
    time = ("--minutes", "0.2")
    line = (*machines.enter, str(FLOWOS), *words, *time, *store, "--json")
    before = {*machines.shared.iterdir()}
    for _ in range(CALLS):
        (files,) = suite(line, variables)
        if levels(files, "clients") == {"1", "2"}:
            break
    assert "a client on each of 1, 2, 4 .. nodes of the pool" in files["instead"]
    assert f"The storage is {machines.shared}, the shared folder of pool two" in files["instead"]
    assert levels(files, "clients") == {"1", "2"}, (files["lacking"], files["waiting"])
    page = (tmp_path / "report/suite.html").read_text()
    assert f"{files['runs'][0]}, between n1, n2" in page
    assert {*machines.shared.iterdir()} == before, "no file of a client stays"


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
