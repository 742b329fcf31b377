"""Gangs, by every MPI of this machine."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest

from flowos.engine import here
from flowos.model import (
    BARE,
    Exited,
    Killed,
    Launch,
    LaunchFailed,
    NotStarted,
    Pairs,
    RuntimeFailed,
)
from tests.waiting import PATIENCE_SECONDS, numbers_in

from .launched import all_gone

CPUS = len(os.sched_getaffinity(0))

HELLO = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
/* with an argument rank 1 leaves in the middle, with that exit code */
int main(int argc, char** argv) {
  int rank, size, sum;
  cpu_set_t cpus;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && rank == 1) exit(atoi(argv[1]));
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  sched_getaffinity(0, sizeof cpus, &cpus);
  printf("rank %d of %d, sum %d, cpus %d, %s, %s\n", rank, size, sum, CPU_COUNT(&cpus),
         getenv("GIVEN"), getenv("UNSAID") ? "leak" : "exact");
  MPI_Finalize();
  return 0;
}
"""

KNOWN = (
    ("openmpi", "mpicc.openmpi", "mpirun.openmpi"),
    ("mpich", "mpicc.mpich", "mpiexec.mpich"),
)


@dataclass(frozen=True)
class Mpi:
    launcher: str
    mpirun: str
    hello: Path


@pytest.fixture(scope="module", params=KNOWN, ids=lambda known: known[0])
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    launcher, compiler, mpirun = request.param
    found = shutil.which(mpirun)
    if not shutil.which(compiler) or not found:
        pytest.skip(f"no {compiler} or {mpirun} on this machine")
    if CPUS < 2:
        pytest.skip("two bound ranks need two cpus")
    folder = tmp_path_factory.mktemp(launcher)
    (folder / "hello.c").write_text(HELLO)
    argv = [compiler, "-o", str(folder / "hello"), str(folder / "hello.c")]
    subprocess.run(argv, check=True, capture_output=True)
    return Mpi(launcher, found, folder / "hello")


def gang(
    *argv: str, ranks: int = 2, variables: Pairs = (), limit_seconds: float = PATIENCE_SECONDS
) -> Launch:
    return Launch(
        argv=argv,
        ranks=ranks,
        variables=(("PATH", "/usr/bin:/bin"), *variables),
        cwd=PurePath("/tmp"),
        limit_seconds=limit_seconds,
    )


@pytest.mark.usefixtures("nothing_is_left")
def test_two_ranks_are_one_world_on_a_core_each_with_the_exact_environment(
    mpi: Mpi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNSAID", "1")
    launch = gang(str(mpi.hello), variables=(("GIVEN", "a b,$x"),))
    outcome = here().run(launch, launcher=mpi.launcher, mpirun=mpi.mpirun)
    assert outcome.end == Exited(0), outcome
    assert sorted(outcome.stdout.decode().splitlines()) == [
        f"rank {rank} of 2, sum 1, cpus 1, a b,$x, exact" for rank in (0, 1)
    ]
    assert outcome.usage.wall_seconds > 0


def test_a_gang_inside_a_rank_and_an_allocation_is_a_world_of_its_own(
    mpi: Mpi, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = {
        "PMIX_RANK": "5", "PMIX_NAMESPACE": "out", "PMI_RANK": "5", "PMI_SIZE": "9", "PMI_FD": "9",
        "OMPI_COMM_WORLD_RANK": "5", "SLURM_JOB_ID": "1", "SLURM_JOBID": "1", "SLURM_PROCID": "5",
        "SLURM_NNODES": "2", "SLURM_NODELIST": "a,b", "SLURM_JOB_NODELIST": "a,b",
        "SLURM_TASKS_PER_NODE": "1",
    }  # fmt: skip
    for name, value in outer.items():
        monkeypatch.setenv(name, value)
    launch = Launch(
        argv=(str(mpi.hello),),
        ranks=2,
        variables=(*here().variables(BARE), ("GIVEN", "x")),
        limit_seconds=PATIENCE_SECONDS,
    )
    outcome = here().run(launch, launcher=mpi.launcher, mpirun=mpi.mpirun)
    assert outcome.end == Exited(0), outcome
    assert outcome.stdout.count(b" of 2, sum 1,") == 2


def test_more_ranks_than_cpus_run_when_asked_for(mpi: Mpi) -> None:
    launch = gang(str(mpi.hello), ranks=CPUS + 1, variables=(("GIVEN", "x"),))
    with pytest.raises(LaunchFailed, match="ask for fewer"):
        here().run(launch, launcher=mpi.launcher, mpirun=mpi.mpirun)
    outcome = here().run(launch, launcher=mpi.launcher, mpirun=mpi.mpirun, oversubscribe=True)
    assert outcome.end == Exited(0), outcome
    assert len(outcome.stdout.splitlines()) == CPUS + 1


def test_the_rank_that_failed_first_is_told(mpi: Mpi) -> None:
    outcome = here().run(gang(str(mpi.hello), "3"), launcher=mpi.launcher, mpirun=mpi.mpirun)
    assert outcome.end == Exited(3), outcome


def test_a_missing_command_is_told_as_without_mpi(mpi: Mpi) -> None:
    outcome = here().run(gang("no-such-command"), launcher=mpi.launcher, mpirun=mpi.mpirun)
    assert outcome.end == NotStarted(
        "no such command 'no-such-command' (looked in PATH=/usr/bin:/bin)"
    )


def test_a_stopped_gang_leaves_nothing(mpi: Mpi, tmp_path: Path) -> None:
    script = f"trap '' TERM; sleep 300 & echo $$ $! >>{tmp_path}/pids; wait; sleep 300"
    running = here().start(gang("sh", "-c", script), launcher=mpi.launcher, mpirun=mpi.mpirun)
    pids = numbers_in(tmp_path / "pids", 4)
    running.stop(grace_seconds=0.3)
    end = running.wait(PATIENCE_SECONDS).end
    assert isinstance(end, Killed)
    assert end.by == "request"
    assert all_gone(pids)


def test_a_gang_beyond_its_limit_is_ended(mpi: Mpi) -> None:
    launch = gang("sleep", "300", limit_seconds=1.0)
    outcome = here().run(launch, launcher=mpi.launcher, mpirun=mpi.mpirun)
    assert outcome.end == Killed(signal.SIGTERM, "limit"), outcome


def test_a_killed_launcher_leaves_no_rank(mpi: Mpi, tmp_path: Path) -> None:
    script = f"(trap '' TERM; exec sleep 300) & echo $$ $! >>{tmp_path}/pids; wait"
    running = here().start(gang("sh", "-c", script), launcher=mpi.launcher, mpirun=mpi.mpirun)
    pids = numbers_in(tmp_path / "pids", 4)
    os.kill(running.pid, signal.SIGKILL)
    end = running.wait(PATIENCE_SECONDS).end
    assert all_gone(pids)
    assert isinstance(end, RuntimeFailed)
    assert end.reason == "what had started 'sh' was ended by signal 9 before it"
    assert not running.folder.exists()


def test_a_killed_launcher_leaves_no_file(mpi: Mpi, tmp_path: Path) -> None:
    script = f"{mpi.hello}; echo $$ >>{tmp_path}/pids; sleep 300"
    launch = gang("sh", "-c", script, variables=(("GIVEN", "x"),))
    running = here().start(launch, launcher=mpi.launcher, mpirun=mpi.mpirun)
    numbers_in(tmp_path / "pids", 2)
    memory = list(Path("/dev/shm").glob(f"flowos-*-{here().folder().name}-{running.folder.name}"))
    assert len(memory) == 1
    if mpi.launcher == "openmpi":
        assert list(running.folder.glob("ompi.*")), "it keeps its files elsewhere"
    os.kill(running.pid, signal.SIGKILL)
    running.wait(PATIENCE_SECONDS)
    assert not running.folder.exists()
    assert not memory[0].exists()


def test_a_program_of_another_mpi_fails_with_the_reason_and_runs_no_worlds_of_one(
    tmp_path: Path,
) -> None:
    for (launcher, _, mpirun), (_, compiler, _) in (KNOWN, KNOWN[::-1]):
        if not shutil.which(compiler) or not shutil.which(mpirun):
            pytest.skip(f"no {compiler} or {mpirun} on this machine")
        (tmp_path / "hello.c").write_text(HELLO)
        argv = [compiler, "-o", str(tmp_path / "hello"), str(tmp_path / "hello.c")]
        subprocess.run(argv, check=True, capture_output=True)
        launch = gang(str(tmp_path / "hello"), variables=(("GIVEN", "x"),))
        outcome = here().run(launch, launcher=launcher, mpirun=mpirun)
        assert isinstance(outcome.end, Exited | Killed), outcome
        assert outcome.end != Exited(0)
        assert b" of 1, " not in outcome.stdout
        assert b"the-mpirun-is-of-" in outcome.stderr.replace(b"_", b"-")


def test_a_launcher_that_is_none_is_told_with_its_last_words(tmp_path: Path) -> None:
    broken = tmp_path / "mpirun"
    broken.write_text("#!/bin/sh\necho 'libmpi.so.40: cannot open' >&2\nexit 127\n")
    broken.chmod(0o755)
    outcome = here().run(gang("true"), launcher="openmpi", mpirun=str(broken), oversubscribe=True)
    assert outcome.end == RuntimeFailed(
        "what should start 'true' ended with 127: libmpi.so.40: cannot open"
    )
