"""`flowos measure --dry-run` names the folders that will be measured."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Compiler, Facts, Mpi, Tool

POOL = '[pools.p]\nkind = "slurm"\nnodes = 2\nshared = "{shared}"\nscratch = "/nvme"\n'
PYTHON = Path(sys.executable)
MPICC = Mpi(name="MPICH", family="mpich", version="4", compiler=PYTHON, mpirun=PYTHON)
GCC = Compiler(name="gcc", family="gcc", language="c", version="12", path=PYTHON)
Flowos = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def has_all_programs(monkeypatch: pytest.MonkeyPatch, looked_once: Facts) -> None:
    """Nothing of it is run."""
    torch = Tool(name="torch", version="2", path=PYTHON)
    found = replace(looked_once, tools=(torch,), mpis=(MPICC,), compilers=(GCC,))
    monkeypatch.setattr("flowos.operations.measure._run.facts", lambda _: found)


@pytest.mark.usefixtures("has_all_programs")
def test_on_this_machine_they_are_new_ones_in_scratch_and_the_usual_one(
    flowos: Flowos, tmp_path: Path
) -> None:
    asked = ("measure", "--dry-run", "--quick", "--only", "feed,training,parallel_io")
    said = flowos(*asked, "--scratch", str(tmp_path)).stdout
    new = f"{tmp_path}/flowos-XXXXXXXX"
    assert f"{sys.executable} -m flowos.feeder.minibatches {new} source 2 " in said
    assert f"torch_training.py --folder {new} --own /var/tmp " in said
    assert f" --folder {new} --clients 2 " in said
    assert "{" not in said
    assert not [*tmp_path.glob("flowos-*")]


@pytest.mark.usefixtures("has_all_programs")
def test_on_a_pool_they_are_those_that_it_names(flowos: Flowos, tmp_path: Path) -> None:
    (tmp_path / "flowos.toml").write_text(POOL.format(shared=tmp_path))
    asked = ("measure", "--dry-run", "--quick", "--only", "training,metadata")
    said = flowos(*asked, "--pool", "p", "--nodes", "2").stdout
    new = f"{tmp_path}/flowos-XXXXXXXX"
    assert f"torch_training.py --folder {new} --own /nvme " in said
    assert f" --folder {new} --directory unique " in said
    assert "{" not in said


def test_between_environments_on_a_pool_they_are_those_that_were_made_to_see(
    flowos: Flowos, tmp_path: Path, looked_once: Facts
) -> None:
    if not looked_once.mpis:
        pytest.skip("no MPI: apt install openmpi-bin libopenmpi-dev")
    (tmp_path / "flowos.toml").write_text(POOL.format(shared=tmp_path))
    asked = ("measure", "--dry-run", "--quick", "--only", "metadata", "--env", "bare")
    said = flowos(*asked, "--env", "bare", "--pool", "p", "--nodes", "2").stdout
    assert f" --folder {tmp_path}/flowos-" in said
    assert "{" not in said


@pytest.mark.usefixtures("looked_once")
def test_words_of_the_person_stay_as_they_are(flowos: Flowos) -> None:
    said = flowos("measure", "--dry-run", "--", "echo", "{scratch}", "{python}").stdout
    assert "echo '{scratch}' '{python}'" in said
