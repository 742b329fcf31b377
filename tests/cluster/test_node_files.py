"""Files between this machine and nodes that do not see its folders."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from .box import Box
from .grid import Grid
from .test_slurm_gangs import programs_in

MOVES = Path(__file__).with_name("moves_files.py")
SAID = [
    "command given",
    "command changed",
    "task copy given.txt changed False",
    "task there seen.txt seen True",
    "task copy given.txt changed False",
    "folder a=1 b=2",
    f"map {' '.join(f'copy item{i} item {i} False' for i in range(6))}",
    "same OWN/given.txt",
    "twin copy twin.txt ours False",
    "twin there like.txt ours True",
    "output OWN/new/out.txt first",
    "output OWN/new/out.txt second",
    "both both",
    "refused TaskFailed task 'writes', output 'out': OWN/blocked/out.txt lies on node NODE alone "
    "and cannot be copied to that path of this machine: File exists; write to a folder that both "
    "see, as SHARED",
    "kept True changed",
    "parts a b c b True None",
    "constants a b c b True None",
    "unchanged True",
    "split x y x y None",
    "again x y x y False None",
    "refused TaskFailed task 'blocked', output 'out'['a'][0]: OWN/blocked/part.txt",
]
ON_RAY = [
    "task copy given.txt given False",
    SAID[6],
    "constant copy given.txt given False",
    "constant copy given.txt changed False",
    "split x n1 x y n2 x y",
    "wide of changed of changed of changed of changed",
    "refused TaskFailed task 'writes', output 'out': OWN/blocked/out.txt",
]
RANKS = "ranks 0 of 2 on n1, sum 1 1 of 2 on n2, sum 1 mesh mesh"
NOTE = "note OWN/given.txt is copied to SHARED: node NODE does not see it; so are {} more files"


def said(box: Box, keys: dict[str, str], *words: str) -> list[str]:
    """By the program; all that was copied is gone."""
    given = json.dumps({"shared": str(box.shared), **keys})
    done = box.run(sys.executable, str(MOVES), given, *words)
    assert done.stderr == ""
    assert not [*(box.folder / "content").glob(".flowos-*")]
    found = done.stdout.replace(str(box.shared), "SHARED")
    return found.replace("node n1", "node NODE").replace("node n2", "node NODE").splitlines()


def test_files_reach_nodes_of_slurm_that_do_not_see_them_and_come_back(
    machines: Box, tmp_path: Path
) -> None:
    shutil.copy(programs_in(tmp_path) / "openmpi", machines.folder / "content")
    lines = said(machines, {"kind": "slurm"}, str(machines.shared / "openmpi"))
    assert lines == [*SAID, RANKS, NOTE.format(12)]


def test_files_reach_nodes_of_grid_engine_that_do_not_see_them_and_come_back(grid: Grid) -> None:
    keys = {"kind": "sge", "queue": "main.q", "pe": "nodes"}
    assert said(grid, keys) == [*SAID, NOTE.format(11)]


def test_files_reach_tasks_of_ray_on_nodes_that_do_not_see_them_and_come_back(
    machines: Box,
) -> None:
    pytest.importorskip("ray")
    assert said(machines, {"kind": "slurm"}, "ray") == [*ON_RAY, NOTE.format(8)]
