"""Environments that are compared on nodes of a real Slurm: on one, and between two."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.environments.conftest import debian  # noqa: F401 - fixture

from .box import Box
from .python_image import make_python_image

POOL = '[pools.c]\nkind = "slurm"\nnodes = 2\nshared = "{shared}"\n'
ONCE = Path(__file__).with_name("measures_once.py")
TIMES = ((), ("--minutes", "4"))
"""What a very busy machine does not measure in time is stopped."""


def test_on_one_node_what_is_compared_here_is_compared_there(box: Box, tmp_path: Path) -> None:
    """The same binary, in a bundle that was made for the node."""
    image = make_python_image(tmp_path / "busybox")
    words = ("--nodes", "1", "--only", "startup,stream", "--env", image)
    report = measured(box, tmp_path, {"stream"}, *words)
    assert nodes_of(report) == ["n1"]
    whys = [
        why["reason"] for case, why in report["run"]["unmeasured"] if case["probe"] == "startup"
    ]
    assert whys
    assert all("a start on node n1 is timed from here" in why for why in whys)


def test_storage_that_the_node_alone_has_is_measured_there_and_nothing_is_left(
    machines: Box, tmp_path: Path
) -> None:
    words = ("--nodes", "1", "--only", "fio", "--scratch", "/tmp")
    report = measured(machines, tmp_path, {"fio"}, *words)
    assert nodes_of(report) == ["n1"]
    look = "cd /tmp && find . -name 'flowos-data*' -o -maxdepth 1 -name 'flowos-????????'"
    assert machines.run("srun", "--nodelist=n1", "sh", "-c", look).stdout == ""


def test_a_folder_that_nodes_do_not_share_is_refused_where_several_measure_it(
    machines: Box, tmp_path: Path
) -> None:
    done = call(machines, tmp_path, "--only", "metadata", "--scratch", "/tmp")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "flowos measure: node n1 does not see /tmp: give a folder that all nodes see with --scratch"
    )


def test_between_two_nodes_that_are_apart_ranks_are_in_the_image_too(
    machines: Box,
    debian: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    report = measured(machines, tmp_path, {"mpi"}, "--only", "mpi", "--env", debian)
    assert nodes_of(report) == ["n1", "n2"]
    latencies = [m for m in report["measurements"] if m["metric"] == "latency"]
    assert min(m["median"] for m in latencies) > 1e-6, "over a link, not through memory"


def nodes_of(report: dict[str, Any]) -> list[str]:
    return [node["name"] for node in report["run"]["deployment"]["nodes"]]


def measured(box: Box, folder: Path, probes: set[str], *words: str | Path) -> dict[str, Any]:
    """The report, once each of these was measured in each environment."""
    for time in TIMES:
        done = call(box, folder, *words, *time)
        assert done.returncode in (0, 1), done.stderr
        report: dict[str, Any] = json.loads(done.stdout)["report"]
        seen = {(m["case"]["probe"], env_of(m)) for m in report["measurements"]}
        environments = max(1, len(report["run"]["environments"]))
        if {probe for probe, _ in seen} == probes and len(seen) == environments * len(probes):
            return report
    pytest.fail(f"{done.stderr}{report['run']['unmeasured']}")


def call(box: Box, folder: Path, *words: str | Path) -> "subprocess.CompletedProcess[str]":
    (folder / "flowos.toml").write_text(POOL.format(shared=box.shared))
    given = {"FLOWOS_CONFIG": str(folder / "flowos.toml"), "XDG_CACHE_HOME": f"{box.folder}/cache"}
    out = ("--store", f"sqlite:///{folder}/runs.db", "--out", folder / "report", "--json")
    asked = (sys.executable, ONCE, "measure", "--quick", "--pool", "c", *words, *out)
    return subprocess.run(
        [*map(str, (*box.enter, *asked))],
        env={**os.environ, **box.variables, **given},
        capture_output=True,
        text=True,
        timeout=500,
    )


def env_of(measurement: dict[str, Any]) -> str:
    return str(dict(measurement["case"]["levels"]).get("env", ""))
