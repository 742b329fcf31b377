"""The same program gives the same bytes wherever its pool is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import comes

from .box import Box
from .cloud_nodes import down
from .grid import Grid

PROGRAM = Path(__file__).with_name("one_flow.py")


def ran(
    pool: str, nodes: int, enter: tuple[str, ...], *workers: str, **variables: str
) -> tuple[str, set[str]]:
    """The hash of what it gives, and the names of the nodes that its tasks ran on."""
    words = (sys.executable, str(PROGRAM), pool, str(nodes), *workers)
    done = subprocess.run(
        (*enter, *words), env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    digest, *names = done.stdout.split()
    sys.stdout.write(f"{digest} {pool} ({', '.join((*names, *workers))})\n")
    return digest, set(names)


@pytest.fixture(scope="module")
def here() -> str:
    """Its hash on this machine."""
    digest, names = ran("local", 1, ())
    assert names == {os.uname().nodename}
    return digest


def settings(folder: Path, shared: Path, **keys: str) -> dict[str, str]:
    lines = [f'{key} = "{value}"' for key, value in {**keys, "shared": shared}.items()]
    file = folder / "flowos.toml"
    file.write_text("\n".join(("[pools.there]", "nodes = 2", *lines, "")))
    return {"FLOWOS_CONFIG": str(file)}


def test_on_slurm(here: str, box: Box, tmp_path: Path) -> None:
    pool = settings(tmp_path, box.shared, kind="slurm")
    assert ran("there", 2, (), **box.variables, **pool) == (here, {"n1", "n2"})


def test_on_nodes_that_slurm_powers_up(here: str, cloud: Box, tmp_path: Path) -> None:
    pool = settings(tmp_path, cloud.shared, kind="slurm", partition="cloud")
    assert ran("there", 2, cloud.enter, **cloud.variables, **pool) == (here, {"c1", "c2"})
    assert comes(lambda: down(cloud) == {"c1", "c2"})


def test_on_grid_engine(here: str, grid: Grid, tmp_path: Path) -> None:
    pool = settings(tmp_path, grid.shared, kind="sge", queue="main.q", pe="nodes")
    assert ran("there", 2, grid.enter, **grid.variables, **pool) == (here, {"n1", "n2"})
    assert comes(lambda: grid.ask("qstat", "-u", "*") == "")


def test_on_ray(here: str, box: Box, tmp_path: Path) -> None:
    """On one node: on several, workers="ray" refuses the flow's command, which would run here.

    All else is as elsewhere: the same program and its values, in actors of the slice's own Ray.
    """
    pytest.importorskip("ray")
    pool = settings(tmp_path, box.shared, kind="slurm")
    digest, names = ran("there", 1, (), "ray", **box.variables, **pool)
    assert digest == here
    assert len(names & {"n1", "n2"}) == len(names) == 1
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
