"""mpi_pairs.c, compiled and started by every MPI of this machine: whole curves, checked data."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from flowos.engine import here, run_interleaved
from flowos.model import Case, Launch, Outcome, Unmeasured
from flowos.probes import mpi
from flowos.probes.mpi import MpiPairs
from tests.mpirun import started

SOURCE = Path(mpi.__file__).parent / "programs" / "mpi_pairs.c"
CORES = len(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(CORES < 2, reason="two busy ranks need two cores")


@dataclass(frozen=True)
class Family:
    name: str
    compiler: str
    mpirun: tuple[str, ...]


def find_families() -> list[Family]:
    known = (
        Family("openmpi", "mpicc.openmpi", ("mpirun.openmpi", "--bind-to", "core", "-n")),
        Family("mpich", "mpicc.mpich", ("mpiexec.mpich", "-bind-to", "core", "-n")),
    )
    return [f for f in known if shutil.which(f.compiler)]


FAMILIES = find_families()
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)


def compile_by(family: Family, to: Path, source: Path = SOURCE) -> Path:
    argv = [family.compiler, "-O2", str(source), "-o", str(to), f"-I{SOURCE.parent}"]
    subprocess.run(argv, check=True, capture_output=True)
    return to


def run(family: Family, binary: Path, *words: str, ranks: int = 2) -> Outcome:
    return started((*family.mpirun, str(ranks), str(binary), *words))


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mpi")
    return {f.name: compile_by(f, folder / f.name) for f in FAMILIES}


def test_an_mpi_is_here_to_test_with() -> None:
    assert FAMILIES, "apt install openmpi-bin libopenmpi-dev"


@each_family
def test_each_mpi_gives_the_whole_curve_of_every_metric(
    family: Family, binaries: dict[str, Path]
) -> None:
    outcome = run(family, binaries[family.name], "3", "0.0005")
    readings = MpiPairs().read(Case("mpi"), outcome)
    assert not isinstance(readings, Unmeasured), readings
    sizes = {
        metric: [int(dict(r.levels)["bytes"]) for r in readings if r.metric == metric]
        for metric in ("latency", "bandwidth", "allreduce")
    }
    assert sizes["latency"] == sizes["bandwidth"] == [2**i for i in range(23)]
    assert sizes["allreduce"] == [2**i for i in range(2, 21)]
    assert all(len(r.values) == 3 and min(r.values) > 0 for r in readings)
    assert {(r.metric, r.unit) for r in readings} == {
        ("latency", "second"),
        ("bandwidth", "byte/s"),
        ("allreduce", "second"),
    }


@each_family
def test_all_ranks_of_two_programs_that_take_turns_have_the_same_turns(
    family: Family, binaries: dict[str, Path]
) -> None:
    launch = Launch(
        argv=(str(binaries[family.name]), "4", "0.0002", "64"), ranks=2, limit_seconds=300.0
    )
    two = [here().prepare(launch, launcher=family.name, mpirun=family.mpirun[0]) for _ in range(2)]
    for outcome in run_interleaved(two, "seed"):
        assert isinstance(outcome, Outcome)
        readings = MpiPairs().read(Case("mpi"), outcome)
        assert not isinstance(readings, Unmeasured), readings
        assert {len(r.values) for r in readings} == {4}


@each_family
def test_the_two_ranks_run_on_a_core_each(family: Family, binaries: dict[str, Path]) -> None:
    readings = MpiPairs().read(Case("mpi"), run(family, binaries[family.name], "1", "0.0001", "8"))
    assert not isinstance(readings, Unmeasured), readings
    first, second = dict(readings[0].notes)["cpus"].split()
    assert first.isdigit()
    assert second.isdigit()
    assert first != second


@each_family
@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        (
            "MPI_Recv(pair->received, bytes",
            "MPI_Recv(pair->received, bytes < 9 ? bytes : 9",
            "the program's own check failed",
        ),
        (
            "MPI_Irecv(pair->received,",
            "MPI_Irecv(pair->sent,",
            "bandwidth of 1 bytes: wrong data came",
        ),
        ("MPI_FLOAT, MPI_SUM", "MPI_FLOAT, MPI_MAX", "allreduce of 4 bytes: wrong data came"),
    ],
)
def test_data_that_comes_wrong_is_a_failure(
    family: Family, tmp_path: Path, right: str, wrong: str, reason: str
) -> None:
    text = SOURCE.read_text()
    assert right in text
    source = tmp_path / "mpi_pairs.c"
    source.write_text(text.replace(right, wrong))
    outcome = run(family, compile_by(family, tmp_path / "broken", source), "1", "0.0001", "64")
    answer = MpiPairs().read(Case("mpi"), outcome)
    assert isinstance(answer, Unmeasured)
    assert answer.reason.startswith(reason)


@each_family
def test_one_rank_alone_is_refused(family: Family, binaries: dict[str, Path]) -> None:
    outcome = run(family, binaries[family.name], "1", "0.001", ranks=1)
    answer = MpiPairs().read(Case("mpi"), outcome)
    assert answer == Unmeasured(
        reason="1 rank(s), not 2: was it started by the mpirun of another MPI?"
    )


@each_family
def test_wrong_words_are_refused_with_the_usage(family: Family, binaries: dict[str, Path]) -> None:
    outcome = run(family, binaries[family.name], "many", "0.001")
    answer = MpiPairs().read(Case("mpi"), outcome)
    assert isinstance(answer, Unmeasured)
    assert answer.reason.startswith("usage: mpi_pairs REPETITIONS")


@pytest.mark.skipif(not shutil.which("taskset"), reason="needs taskset")
def test_two_ranks_bound_to_one_core_are_refused(binaries: dict[str, Path]) -> None:
    if "mpich" not in binaries:
        pytest.skip("MPICH is not installed")
    cpu = str(min(os.sched_getaffinity(0)))
    words = (str(binaries["mpich"]), "1", "0.001", "8")
    outcome = started(("mpiexec.mpich", "-n", "2", "taskset", "-c", cpu, *words))
    answer = MpiPairs().read(Case("mpi"), outcome)
    assert answer == Unmeasured(reason=f"both ranks are bound to cpu {cpu}")
