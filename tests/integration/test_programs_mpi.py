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
from flowos.probes._mpi_compilers import wrapper_words
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


UNITS = {
    "latency": "second",
    "bandwidth": "byte/s",
    "bidirectional_bandwidth": "byte/s",
    "allreduce": "second",
    "multi_pair_bandwidth": "byte/s",
    "message_rate": "1/s",
}
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
    outcome = run(family, binaries[family.name], "1", "0.0003")
    readings = MpiPairs().read(Case("mpi"), outcome)
    assert not isinstance(readings, Unmeasured), readings
    sizes = {
        metric: [int(dict(r.levels)["bytes"]) for r in readings if r.metric == metric]
        for metric in UNITS
    }
    assert sizes.pop("allreduce") == [2**i for i in range(2, 21)]
    assert list(sizes.values()) == [[2**i for i in range(23)]] * 5
    assert all(len(r.values) == 1 and min(r.values) > 0 for r in readings)
    assert {r.metric: r.unit for r in readings} == UNITS


@each_family
def test_the_rate_of_one_pair_is_that_of_its_bandwidth(
    family: Family, binaries: dict[str, Path]
) -> None:
    outcome = run(family, binaries[family.name], "2", "0.0005", "64", "64")
    readings = MpiPairs().read(Case("mpi"), outcome)
    assert not isinstance(readings, Unmeasured), readings
    values = {r.metric: r.values for r in readings}
    assert set(values) == set(UNITS)
    assert all(len(r.values) == 2 and min(r.values) > 0 for r in readings)
    assert values["multi_pair_bandwidth"] == values["bandwidth"]
    rates = [64 * rate for rate in values["message_rate"]]
    assert rates == pytest.approx(values["bandwidth"], rel=1e-6)
    assert {r.levels for r in readings if r.metric == "message_rate"} == {
        (("pairs", "1"), ("bytes", "64"))
    }


def test_two_pairs_send_at_once_and_each_rank_checks_what_came(binaries: dict[str, Path]) -> None:
    """Four ranks that may have to share two cores: of Open MPI, whose ranks then let others run."""
    if "openmpi" not in binaries:
        pytest.skip("Open MPI is not installed")
    words = (str(binaries["openmpi"]), "1", "0.0001", "4096", "1", "4096")
    outcome = started(("mpirun.openmpi", "--oversubscribe", "-n", "4", *words))
    readings = MpiPairs().read(Case("mpi"), outcome)
    assert not isinstance(readings, Unmeasured), readings
    assert [(r.metric, r.levels) for r in readings] == [
        (metric, (("pairs", "2"), ("bytes", size)))
        for size in ("1", "4096")
        for metric in ("multi_pair_bandwidth", "message_rate")
    ]
    assert len(dict(readings[0].notes)["cpus"].split()) == 4
    assert dict(readings[0].notes)["nodes"] == "1"


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
            "      else\n        MPI_Irecv(pair->received,",
            "      else\n        MPI_Irecv(pair->sent,",
            "bandwidth of 1 bytes: wrong data came",
        ),
        (
            "      MPI_Irecv(pair->received, bytes, MPI_CHAR, pair->other, to_me,",
            "      MPI_Irecv(pair->sent, bytes, MPI_CHAR, pair->other, to_me,",
            "bidirectional_bandwidth of 1 bytes: wrong data came",
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
    assert answer.reason.startswith("usage: mpi_pairs [--gpu] REPETITIONS")


@pytest.mark.skipif(not shutil.which("taskset"), reason="needs taskset")
def test_two_ranks_bound_to_one_core_are_refused(binaries: dict[str, Path]) -> None:
    if "mpich" not in binaries:
        pytest.skip("MPICH is not installed")
    cpu = str(min(os.sched_getaffinity(0)))
    words = (str(binaries["mpich"]), "1", "0.001", "8")
    outcome = started(("mpiexec.mpich", "-n", "2", "taskset", "-c", cpu, *words))
    answer = MpiPairs().read(Case("mpi"), outcome)
    assert answer == Unmeasured(reason=f"both ranks are bound to cpu {cpu}")


@each_family
@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
def test_the_wrapper_calls_the_compiler_that_its_variable_names(
    family: Family, tmp_path: Path
) -> None:
    called = shutil.which("clang") or ""
    first, more = wrapper_words(family.name, family.compiler, called)
    (tmp_path / "none.c").write_text("int main(void) { return 0; }\n")
    words = (first, *more, "-S", "-o", "-", str(tmp_path / "none.c"))
    made = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "clang version" in made


def test_messages_of_a_gpu_are_refused_by_an_mpi_that_is_not_cuda_aware(
    binaries: dict[str, Path],
) -> None:
    for family in FAMILIES:
        outcome = run(family, binaries[family.name], "--gpu", "1", "0.0001", "8")
        answer = MpiPairs().read(Case("mpi"), outcome)
        assert isinstance(answer, Unmeasured)
        assert answer.reason == "this MPI is not CUDA-aware"


STAND_IN = """
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *count) { return *count = atoi(getenv("GPUS")), 0; }
int cuDeviceGet(int *device, int number) { return *device = number, number > 1; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = NULL, device > 1; }
int cuCtxSetCurrent(void *context) { return context != NULL; }
int cuMemAlloc_v2(unsigned long long *at, size_t bytes) {
  return *at = (size_t)malloc(bytes), bytes == 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
  memcpy((void *)(size_t)to, from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
  memcpy(to, (void *)(size_t)from, bytes - (size_t)atoi(getenv("LOSES")));
  return 0;
}
int MPIX_Query_cuda_support(void) { return 1; }
"""
"""A driver whose GPU's memory is the host's, and an MPI that takes it."""


@pytest.mark.parametrize(
    ("gpus", "loses", "reason"),
    [
        ("2", "0", ""),
        ("2", "1", "latency of 1 bytes: wrong data came"),
        ("0", "0", "the driver shows no GPU"),
    ],
)
def test_messages_in_memory_of_a_driver_are_sent_and_checked(
    binaries: dict[str, Path], tmp_path: Path, gpus: str, loses: str, reason: str
) -> None:
    """Not a GPU: what the program does around one."""
    family = FAMILIES[0]
    source, driver = tmp_path / "driver.c", tmp_path / "libcuda.so.1"
    source.write_text(STAND_IN)
    words = ("gcc", "-shared", "-fPIC", str(source), "-Wl,-soname,libcuda.so.1")
    subprocess.run((*words, "-o", str(driver)), check=True)
    rank = ("env", f"LD_PRELOAD={driver}", f"GPUS={gpus}", f"LOSES={loses}")
    measures = (str(binaries[family.name]), "--gpu", "2", "0.0001", "64", "1", "64")
    answer = MpiPairs().read(Case("mpi"), started((*family.mpirun, "2", *rank, *measures)))
    if reason:
        assert isinstance(answer, Unmeasured)
        assert answer.reason == reason
    else:
        assert not isinstance(answer, Unmeasured), answer
        metrics = [f"gpu_{metric}" for metric in UNITS if "pair" not in metric]
        assert list(dict.fromkeys(r.metric for r in answer)) == metrics[:-1]
