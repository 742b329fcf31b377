"""Kept results are found as long as the node's own program, which this machine does not see, is
the same."""

import json
import sys
from pathlib import Path

import pytest

from .box import Box
from .grid import Grid

KEEPS = Path(__file__).with_name("keeps_results.py")


@pytest.fixture(params=["slurm", "sge"])
def cluster(request: pytest.FixtureRequest) -> tuple[Box, dict[str, str]]:
    if request.param == "slurm":
        machines: Box = request.getfixturevalue("machines")
        return machines, {"kind": "slurm"}
    grid: Grid = request.getfixturevalue("grid")
    return grid, {"kind": "sge", "queue": "main.q", "pe": "nodes"}


def test_results_are_found_until_the_program_on_the_node_is_another(
    cluster: tuple[Box, dict[str, str]],
) -> None:
    box, keys = cluster
    done = box.run(sys.executable, str(KEEPS), json.dumps({"shared": str(box.shared), **keys}))
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["one 8 0", "one 8 2", "two 8 1", "two 8 2", "same True"]
