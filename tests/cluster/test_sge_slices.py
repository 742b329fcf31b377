"""Nodes of a real Grid Engine keep what every provider promises, and run flows."""

import os
import subprocess
import sys
from pathlib import Path

from .grid import Grid
from .test_box import left_of

TOGETHER = "4"
"""Tests at a time: most of what they do is to wait for the scheduler, which looks once a second."""


def test_all_that_is_promised_holds_of_its_nodes() -> None:
    """A program that holds nodes is on a machine that they see: see `on_a_grid`."""
    checkout = Path(__file__).parents[2]
    with Grid(3, slots=48) as grid:
        words = ("env", "-C", checkout, sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
        done = subprocess.run(
            (*grid.enter, *words, "-q", "-n", TOGETHER, "tests/cluster/on_a_grid.py"),
            env={**os.environ, **grid.variables, "GRID_SHARED": str(grid.shared)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert " passed" in done.stdout
        assert list(grid.shared.iterdir()) == []
    assert left_of(grid.folder) == []
