"""Ranks as steps of a job of a real Slurm, started by the one way in which all processes start."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.model import Exited, Killed, Launch

from .box import Box

HELLO = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  char host[64] = "";
  char* node = getenv("SLURMD_NODENAME");
  gethostname(host, sizeof host - 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d of %d on %s, sum %d\n", rank, size, node ? node : host, sum);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
"""

NO_SHARED_MEMORY = {"OMPI_MCA_btl": "self,tcp"}
"""Open MPI's ranks of n1 would take what n2's keep in /dev/shm for that of their own node."""


@pytest.fixture
def job(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both nodes, held; a job around us that is of another cluster."""
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    box.run("salloc", "--no-shell", "--nodes=2")
    found = box.ask("squeue", "--noheader", "--format=%A")
    monkeypatch.setenv("SLURM_JOB_ID", "999999")
    monkeypatch.setenv("SLURM_NNODES", "7")
    yield found
    box.run("scancel", found)


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One program for each MPI."""
    folder = tmp_path_factory.mktemp("hello")
    (folder / "hello.c").write_text(HELLO)
    for mpi in ("openmpi", "mpich"):
        compiler = shutil.which(f"mpicc.{mpi}")
        if compiler is None:
            pytest.skip(f"no mpicc of {mpi}")
        words = (compiler, "-o", folder / mpi, folder / "hello.c")
        subprocess.run(words, check=True, capture_output=True)
    return folder


def launch(*argv: object, ranks: int = 2, limit_seconds: float = 60.0) -> Launch:
    words = tuple(map(str, argv))
    variables = {"PATH": os.environ["PATH"], **NO_SHARED_MEMORY}
    return Launch(
        argv=words, ranks=ranks, limit_seconds=limit_seconds, variables=tuple(variables.items())
    )


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_ranks_are_one_world_over_the_nodes(job: str, hello: Path, mpi: str) -> None:
    done = here().run(launch(hello / mpi), launcher=f"srun-{mpi}", job=job)
    assert done.end == Exited(0), done.stderr
    assert sorted(done.stdout.decode().splitlines()) == [
        "0 of 2 on n1, sum 1",
        "1 of 2 on n2, sum 1",
    ]


@pytest.mark.parametrize(("mpi", "program"), [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_a_program_of_another_mpi_fails_and_is_no_world_of_its_own(
    job: str, hello: Path, mpi: str, program: str
) -> None:
    done = here().run(launch(hello / program), launcher=f"srun-{mpi}", job=job)
    assert done.end != Exited(0)
    assert b"of 1" not in done.stdout


def test_a_ranks_exit_code_is_the_launchs(job: str, hello: Path) -> None:
    done = here().run(launch(hello / "mpich", 7), launcher="srun-mpich", job=job)
    assert done.end == Exited(7), done


def test_a_time_limit_ends_the_step(box: Box, job: str) -> None:
    done = here().run(launch("sleep", 1000, ranks=1, limit_seconds=1.0), launcher="srun", job=job)
    assert isinstance(done.end, Killed), done
    assert done.end.by == "limit"
    steps = ("squeue", "--steps", "--noheader", "--format=%i")
    assert [s for s in box.ask(*steps).split() if not s.endswith(".extern")] == []
