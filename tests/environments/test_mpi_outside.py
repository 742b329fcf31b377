"""Ranks started by this machine's mpirun, inside an image that has the same MPI (seed 000, 3.2)."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import pytest

import flowos as fo
from flowos.engine import Ready, RunningProcess, SliceOptions, here, open_slice
from flowos.model import (
    Environment,
    EnvironmentRefused,
    Exited,
    Form,
    Killed,
    Launch,
    LaunchFailed,
    NotStarted,
    RuntimeFailed,
    TaskFailed,
)
from tests.waiting import PATIENCE_SECONDS, numbers_in

from .conftest import (
    INSIDE,
    all_gone,
    children_of,
    make_busybox,
    ready_or_skip,
    squash,
    words_of,
)

RUNTIMES: tuple[tuple[str, Form], ...] = (
    ("ch-run", "folder"),
    ("ch-run", "squashfs"),
    ("bwrap", "squashfs"),
    ("podman", "squashfs"),
    ("apptainer", "squashfs"),
)

HELLO = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
/* Says who it is and whether it can read its neighbour's memory (CMA); with an argument it appends
 * its number and its process's to that file, and waits. */
int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long own = 42 + rank, read = 0, mine[2] = {getpid(), (long)&own}, theirs[2];
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Sendrecv(mine, 2, MPI_LONG, to, 0, theirs, 2, MPI_LONG, from, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  struct iovec here = {&read, sizeof read}, there = {(void*)theirs[1], sizeof own};
  process_vm_readv((pid_t)theirs[0], &here, 1, &there, 1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d reads %ld, image %s\n", rank, size, read,
         access("/.flowos", F_OK) == 0 ? "yes" : "no");
  if (argc > 1) {
    FILE* file = fopen(argv[1], "a");
    fprintf(file, "%ld\n", (long)getpid());
    fclose(file);
    sleep(300);
  }
  MPI_Finalize();
  return 0;
}
"""

MPI4PY = """
from mpi4py import MPI
world = MPI.COMM_WORLD
print("rank", world.rank, "of", world.size, "sum", world.allreduce(world.rank + 1))
"""


@dataclass(frozen=True)
class Mpi:
    launcher: str
    mpirun: str
    hello: Path


@pytest.fixture(scope="module", params=RUNTIMES, ids=lambda place: "-".join(place))
def asked(
    request: pytest.FixtureRequest, debian: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    runtime, form = request.param
    image = debian
    if form == "folder":
        image = tmp_path_factory.getbasetemp() / "debian-folder"
        if not image.exists():
            subprocess.run(["unsquashfs", "-q", "-n", "-d", image, debian], check=True)
    return Environment(image=here().image_at(image), runtime=runtime)


@pytest.fixture(scope="module")
def env(asked: Environment) -> Iterator[Environment]:
    with ready_or_skip(asked) as ready:
        here().run(Launch(argv=("true",), env=ready.env))  # makes what the session keeps
        yield ready.env


@pytest.fixture(scope="module")
def one_env(debian: Path) -> Iterator[Environment]:
    """Where the runtime makes no difference."""
    with first_ready(debian) as ready:
        here().run(Launch(argv=("true",), env=ready.env))
        yield ready.env


def first_ready(image: Path) -> Ready:
    return ready_or_skip(Environment(image=here().image_at(image), runtime="ch-run"))


@pytest.fixture(
    scope="module",
    params=[
        ("openmpi", "mpicc.openmpi", "mpirun.openmpi"),
        ("mpich", "mpicc.mpich", "mpiexec.mpich"),
    ],
    ids=lambda known: known[0],
)
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    launcher, compiler, mpirun = request.param
    found = shutil.which(mpirun)
    if not found or not shutil.which(compiler):
        pytest.skip(f"no {compiler} or {mpirun} on this machine")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two bound ranks need two cpus")
    folder = tmp_path_factory.mktemp(launcher)
    (folder / "hello.c").write_text(HELLO)
    argv = [compiler, "-o", str(folder / "hello"), str(folder / "hello.c")]
    subprocess.run(argv, check=True, capture_output=True)
    return Mpi(launcher, found, folder / "hello")


def gang(env: Environment, *argv: object) -> Launch:
    return Launch(
        argv=tuple(map(str, argv)),
        env=env,
        ranks=2,
        variables=INSIDE,
        limit_seconds=PATIENCE_SECONDS,
    )


def two_that_wait(env: Environment, mpi: Mpi, file: Path) -> tuple[RunningProcess, list[int]]:
    running = here().start(gang(env, mpi.hello, file), launcher=mpi.launcher, mpirun=mpi.mpirun)
    return running, numbers_in(file, 2)


def shared_memory() -> set[Path]:
    """What gangs of this session keep in there."""
    return set(Path("/dev/shm").glob(f"flowos-*-{here().folder().name}-*/**/*"))


@pytest.mark.usefixtures("nothing_is_left")
def test_ranks_from_outside_are_one_world_and_read_each_others_memory(
    env: Environment, mpi: Mpi
) -> None:
    here().check_mpi(env, mpi.launcher, mpi.mpirun, INSIDE)
    outcome = here().run(gang(env, mpi.hello), launcher=mpi.launcher, mpirun=mpi.mpirun)
    assert outcome.end == Exited(0), outcome
    assert sorted(outcome.stdout.decode().splitlines()) == [
        "rank 0 of 2 reads 43, image yes",
        "rank 1 of 2 reads 42, image yes",
    ]
    assert outcome.stderr == b""


@pytest.mark.usefixtures("nothing_is_left")
def test_ranks_that_end_at_once_do_not_miss_their_container(env: Environment, mpi: Mpi) -> None:
    for _ in range(5):
        outcome = here().run(gang(env, "true"), launcher=mpi.launcher, mpirun=mpi.mpirun)
        assert outcome.end == Exited(0), outcome


@pytest.mark.usefixtures("nothing_is_left")
def test_a_command_that_the_image_lacks_is_told_as_without_mpi(env: Environment) -> None:
    outcome = here().run(
        gang(env, "no-such-command"),
        launcher="mpich",
        mpirun=shutil.which("mpiexec.mpich") or "mpiexec",
    )
    assert outcome.end == NotStarted(
        "no such command 'no-such-command' (looked in PATH=/bin:/usr/bin)"
    )


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("victim", ["rank", "mpirun", "holder", "nobody"])
def test_whoever_is_killed_nothing_is_left(
    one_env: Environment, mpi: Mpi, victim: str, tmp_path: Path
) -> None:
    running, ranks = two_that_wait(one_env, mpi, tmp_path / "pids")
    assert bool(shared_memory()) == (mpi.launcher == "openmpi")
    if victim == "rank":
        os.kill(ranks[0], signal.SIGKILL)
    elif victim == "mpirun":
        os.kill(running.pid, signal.SIGKILL)
    else:
        if victim == "holder":
            (holder,) = [p for p in children_of(os.getpid()) if "--hold" in words_of(p)]
            os.kill(holder, signal.SIGKILL)
        running.stop(grace_seconds=0.2)
    end = running.wait(PATIENCE_SECONDS).end
    if victim == "rank":
        assert end == Killed(signal.SIGKILL)
    elif victim == "mpirun":
        why = f"what had started '{mpi.hello}' was ended by signal 9 before it"
        assert end == RuntimeFailed(why)
    else:
        assert isinstance(end, Killed)
        assert end.by == "request"
    assert all_gone(ranks)
    assert not shared_memory()


def test_mpi4py_in_the_image_is_one_world(asked: Environment) -> None:
    openmpi = shutil.which("mpirun.openmpi")
    if not openmpi:
        pytest.skip("no mpirun.openmpi on this machine")
    task = fo.gang(
        fo.command(["python3", "-c", MPI4PY], needs=fo.Needs(ranks=2)),
        mpi="openmpi",
        mpirun=openmpi,
    )
    ready_or_skip(asked).close()
    with open_slice(fo.flow_output(task()), here(), SliceOptions(env=asked)) as held:
        (said,) = held.run()
    assert sorted(str(said).splitlines()) == ["rank 0 of 2 sum 3", "rank 1 of 2 sum 3"]


def test_exec_starts_ranks_in_an_image(debian: Path, mpi: Mpi) -> None:
    options = ["--ranks", "2", "--mpi", mpi.launcher, "--mpirun", mpi.mpirun]
    words = ["exec", "--env", f"{debian}@ch-run", *options, "--", str(mpi.hello)]
    said = subprocess.run([flowos(), *words], capture_output=True, text=True)
    assert said.returncode == 0, said
    assert sorted(said.stdout.splitlines()) == [
        "rank 0 of 2 reads 43, image yes",
        "rank 1 of 2 reads 42, image yes",
    ]


def test_ctrl_c_ends_the_ranks_of_exec(debian: Path, mpi: Mpi, tmp_path: Path) -> None:
    options = ["--ranks", "2", "--mpi", mpi.launcher, "--mpirun", mpi.mpirun]
    words = ["exec", "--env", f"{debian}@ch-run", *options, "--", str(mpi.hello)]
    words.append(str(tmp_path / "pids"))
    process = subprocess.Popen([flowos(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ranks = numbers_in(tmp_path / "pids", 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode >= 125
    assert all_gone(ranks)


def flowos() -> str:
    found = shutil.which("flowos", path=str(Path(sys.executable).parent))
    assert found
    return found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An image without any MPI, to put something in."""
    tmp_path.chmod(0o755)
    make_busybox(tmp_path / "image")
    return tmp_path / "image"


def refusal(small: Path, launcher: str, mpirun: str) -> str:
    found = shutil.which(mpirun)
    if not found:
        pytest.skip(f"no {mpirun} on this machine")
    env = Environment(image=here().image_at(small), runtime="ch-run")
    with ready_or_skip(env) as ready:
        task = fo.gang(fo.command(["true"], needs=fo.Needs(ranks=2)), mpi=launcher, mpirun=found)
        flow = fo.flow_output(task())
        with (
            open_slice(flow, here(), SliceOptions(env=env)) as held,
            pytest.raises(TaskFailed) as refused,
        ):
            held.run()
        with pytest.raises(EnvironmentRefused) as told:
            here().check_mpi(ready.env, launcher, found, INSIDE)
    assert str(told.value) in str(refused.value)
    return str(told.value).removeprefix(f"image {small}: ")


def test_an_image_without_mpi_is_refused_before_the_start(small: Path) -> None:
    told = refusal(small, "mpich", "mpiexec.mpich")
    assert told.startswith("it has no MPI, and the node starts ranks with MPICH ")
    assert "apt install mpich" in told


def test_an_image_is_named_as_it_was_asked_for_wherever_it_is_shown(
    small: Path, tmp_path: Path
) -> None:
    squash(small, tmp_path / "small.sqfs")
    told = refusal(tmp_path / "small.sqfs", "mpich", "mpiexec.mpich")
    assert told.startswith("it has no MPI, and the node starts ranks with MPICH ")


def test_an_image_with_another_mpi_is_refused_by_its_library_alone(small: Path) -> None:
    (small / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (small / "usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2").touch()
    told = refusal(small, "openmpi", "mpirun.openmpi")
    assert told.startswith("it has MPICH, but the node starts ranks with Open MPI ")
    assert "each would be a world of its own" in told


def test_an_image_with_another_version_is_refused_by_what_its_program_says(small: Path) -> None:
    (small / "bin/ompi_info").write_text("#!/bin/sh\necho Open MPI v3.0.9\n")
    (small / "bin/ompi_info").chmod(0o755)
    told = refusal(small, "openmpi", "mpirun.openmpi")
    assert told.startswith("it has Open MPI 3.0.9, but the node starts ranks with Open MPI ")


def test_a_starter_of_another_mpi_is_refused(one_env: Environment) -> None:
    found = shutil.which("mpiexec.mpich")
    if not found:
        pytest.skip("no mpiexec.mpich on this machine")
    with pytest.raises(LaunchFailed) as told:
        here().check_mpi(one_env, "openmpi", found, INSIDE)
    assert str(told.value).startswith(f"'{found}' is of MPICH ")


def test_a_container_that_cannot_be_entered_is_one_line(one_env: Environment) -> None:
    assert one_env.image is not None
    gone = replace(one_env, image=replace(one_env.image, source=PurePath("/no/such/image")))
    with pytest.raises(LaunchFailed) as told:
        here().run(gang(gone, "true"), launcher="mpich", mpirun="mpiexec.mpich")
    assert str(told.value).startswith(
        "the container for the ranks (image@ch-run) cannot be entered"
    )
    assert "\n" not in str(told.value)
