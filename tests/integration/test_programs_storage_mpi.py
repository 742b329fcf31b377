"""metadata.c and parallel_io.c as programs of many ranks, by every MPI of this machine."""

import json
import shutil
from pathlib import Path

import pytest

from flowos.model import Outcome, Unmeasured
from flowos.probes._base import read_answer
from tests.integration.test_programs_storage import (
    COUNT,
    LAYOUTS,
    OPERATIONS,
    SHORT,
    Compile,
    both,
    compiled,
)
from tests.mpirun import started

__all__ = ["compiled"]

MPIS = {
    "mpicc.openmpi": ("mpirun.openmpi", "--oversubscribe", "-n"),
    "mpicc.mpich": ("mpiexec.mpich", "-n"),
}
each_mpi = pytest.mark.parametrize("compiler", [c for c in MPIS if shutil.which(c)])


def run_ranks(program: Path, compiler: str, folder: Path, *words: str, ranks: str = "2") -> Outcome:
    words = (ranks, str(program), "--folder", str(folder), *words)
    return started((*MPIS[compiler], *words))


@each_mpi
@pytest.mark.parametrize("layout", [0, 1])
@both
def test_ranks_of_an_mpi_are_clients_as_well(
    compiled: Compile, tmp_path: Path, name: str, compiler: str, layout: int
) -> None:
    program = compiled(name, "", "", compiler, "-DFLOWOS_MPI")
    words = (*SHORT[name], *LAYOUTS[name][layout], COUNT[name], "3", "--stride", "2")
    direct = ("--direct", "no") if name == "parallel_io" else ()
    done = run_ranks(program, compiler, tmp_path, *words, *direct, ranks="3")
    assert done.ok, done.stderr
    found = json.loads(done.stdout)["readings"]
    assert len(found) == (len(OPERATIONS) if name == "metadata" else 2)
    assert all(len(r["values"]) == 2 and min(r["values"]) > 0 for r in found)
    assert list(tmp_path.iterdir()) == []


@each_mpi
@pytest.mark.parametrize(
    ("folder", "ranks", "reason"),
    [
        ("none", "2", "client 0: cannot make a folder: No such file or directory"),
        ("", "1", "client 0: 1 rank(s), not 2: was it started by the mpirun of another MPI?"),
    ],
)
@both
def test_if_a_rank_fails_all_end_and_its_line_is_the_reason(
    compiled: Compile,
    tmp_path: Path,
    name: str,
    compiler: str,
    folder: str,
    ranks: str,
    reason: str,
) -> None:
    program = compiled(name, "", "", compiler, "-DFLOWOS_MPI")
    done = run_ranks(program, compiler, tmp_path / folder, ranks=ranks)
    assert read_answer(done, name) == Unmeasured(reason=reason)
