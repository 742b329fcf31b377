"""What test_sge_slices runs inside a `Grid`, as on its login node.

The tests of `tests/contract/test_providers.py` run here too, on a pool of this kind. The queue has
slots for a dozen slices at once, so that they do not wait for those that others have just freed.
"""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Node, Provider, SliceOptions, provider_of
from flowos.model import Ask, Environment, Exited, Image, Launch, LaunchFailed, Pool
from tests.cluster.on_nodes import (  # noqa: F401 - tests that are collected here too
    a_flow_file_gives_the_same_on,
    test_a_worker_that_dies_is_told_with_its_task_and_its_last_words,
    test_another_one_at_the_disk_of_a_node_is_seen,
    test_arrays_cross_between_this_machine_and_the_nodes,
    test_progress_names_the_task_that_runs_or_none,
    test_what_others_do_on_a_node_is_seen,
)
from tests.cluster.tasks import in_job_of_grid
from tests.cluster.test_slurm_gangs import MPIS, gang, lines, programs_in
from tests.cluster.test_srun_launcher import NO_SHARED_MEMORY
from tests.contract.test_providers import (  # noqa: F401 - `held` is a fixture
    DOUBLE,
    Heard,
    flow_of,
    held,
    on,
    promises,
)
from tests.waiting import PATIENCE_SECONDS, comes

TRIES = {"mpich": {"limit_seconds": 30.0, "retries": 4}}
"""Between nodes Debian's hangs at the end of one of ten runs: docs/slurm.md."""

globals().update(
    promises(
        but={
            "test_tasks_that_run_flows_on_full_nodes_go_on": (
                "its task has the slice itself, which a worker process on a node cannot"
            ),
            "test_resizing_keeps_the_id_and_the_nodes_that_stay": (
                "nodes of one job are given back together: see the test of it below"
            ),
            "test_who_asks_for_more_than_is_free_waits_and_hears_why": (
                "the queue has slots for a dozen slices at once: see test_grid_allocation"
            ),
        }
    )
)
SHARED = Path(os.environ.get("GRID_SHARED", "/nonexistent"))
_pools = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    """We are in some."""


def pool() -> Pool:
    """Like no other; tests run in several processes."""
    name = f"sge{os.getpid()}-{next(_pools)}"
    return Pool(name=name, kind="sge", nodes=3, queue="main.q", pe="nodes", shared=str(SHARED))


@pytest.fixture
def provider() -> Provider:
    return provider_of(pool())


@pytest.fixture
def limited() -> Provider:
    return provider_of(replace(pool(), max_seconds=50))


@pytest.fixture
def several(provider: Provider) -> Provider:
    return provider


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """One that nodes see too."""
    path = SHARED / f"test-{os.getpid()}-{next(_pools)}"
    path.mkdir()
    yield path
    subprocess.run(("rm", "-r", path), check=True)


@pytest.fixture
def node(provider: Provider) -> Iterator[Node]:
    leased = provider.hold(Ask())
    yield leased.nodes[0]
    provider.free(leased)


def qstat(*words: str) -> str:
    return subprocess.run(("qstat", *words), capture_output=True, text=True).stdout


def test_python_tasks_run_on_nodes_of_the_job_and_print_here(
    provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    with on(provider, 3) as s:
        said = {str(result[0]) for result in s.map(flow_of(in_job_of_grid, fo.int64), range(60))}
        assert said == {f"{node.name} {node.job}" for node in s.held.nodes}
    out, err = capsys.readouterr()
    assert sorted(out.split()) == sorted(" ".join(f"out {i}" for i in range(60)).split())
    assert err.count("err ") == 60


def test_commands_run_on_the_node_as_they_would_here(node: Node) -> None:
    script = "cat; echo err >&2; hostname; pwd; exit 3"
    outcome = node.run(Launch(argv=("sh", "-c", script), cwd=Path("/tmp")), stdin=b"given ")
    assert outcome.end == Exited(3)
    assert (outcome.stdout, outcome.stderr) == (f"given {node.name}\n/tmp\n".encode(), b"err\n")
    missing = node.run(Launch(argv=("no-such-program",)))
    assert "no such command" in str(missing.end)
    large = node.run(Launch(argv=("head", "-c", "3000000", "/dev/zero")))
    assert (large.end, large.stdout) == (Exited(0), bytes(3_000_000))


def test_a_command_ends_when_it_is_stopped_and_over_its_time_limit(node: Node) -> None:
    limited = node.run(Launch(argv=("sleep", "1000"), limit_seconds=0.3))
    assert "limit" in str(limited.end)
    running = node.start(Launch(argv=("sleep", "1000")))
    running.stop(0.0)
    assert "request" in str(running.wait(PATIENCE_SECONDS).end)


def test_more_commands_run_at_once_than_the_job_has_slots_there(node: Node) -> None:
    meets = "touch $0.$1; while [ $(ls $0.* | wc -l) -lt 9 ]; do sleep 0.02; done"
    words = ("sh", "-c", meets, str(node.folder() / "here"))
    running = [node.start(Launch(argv=(*words, str(i)))) for i in range(9)]
    assert [each.wait(2 * PATIENCE_SECONDS).end for each in running] == [Exited(0)] * 9


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_are_one_world_on_one_node_and_on_several(
    provider: Provider, tmp_path: Path, mpi: str
) -> None:
    hello = programs_in(tmp_path, mpi) / mpi
    with on(provider, 2) as s:
        first, second = (node.name for node in s.held.nodes)
        mpirun = str(shutil.which(f"mpirun.{mpi}"))

        def ranks(nodes: int, *words: str) -> fo.Flow:
            needs = fo.Needs(ranks=2, nodes=nodes)
            given: Any = {"needs": needs, "variables": NO_SHARED_MEMORY, **TRIES.get(mpi, {})}
            run = fo.command([hello, *words], stdout="s", **given)
            return fo.flow_output(fo.gang(run, mpi=mpi, mpirun=mpirun)())

        assert {*lines(s.run(ranks(2)))} == {
            f"0 of 2 on {first}, sum 1",
            f"1 of 2 on {second}, sum 1",
        }
        found = [line.split()[4] for line in lines(s.run(ranks(1)))]
        assert found in ([first + ","] * 2, [second + ","] * 2)
        with pytest.raises(fo.TaskFailed, match="the command exited with 3"):
            s.run(ranks(2, "3"))


def test_ranks_end_at_their_time_limit(provider: Provider) -> None:
    with on(provider, 2) as s:
        words = ("sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 0 ] || exec sleep 1000; exec sleep 1000")
        with pytest.raises(fo.TaskFailed, match="time limit"):
            s.run(gang(*words, nodes=2, ranks=2, limit_seconds=2.0))


def test_ranks_that_are_not_started_are_refused(node: Node, tmp_path: Path) -> None:
    image = Environment(image=Image(form="folder", digest="", source=tmp_path))
    with pytest.raises(LaunchFailed, match="ranks of openmpi in an image are not started on nodes"):
        node.check_mpi(image, "openmpi")
    with pytest.raises(LaunchFailed, match=r"starts no ranks of 'other'; it knows openmpi, mpich"):
        node.check_mpi(Launch(argv=("true",)).env, "other")


def test_nodes_of_one_job_are_given_back_together(provider: Provider) -> None:
    with HeldSlice(provider, Ask(nodes=2), SliceOptions()) as s:
        with pytest.raises(fo.SliceRefused, match="are of one job and are given back together"):
            s.resize(1)
        s.resize(3)
        assert len(s.nodes) == 3
        s.resize(2)
        assert len(s.nodes) == 2
        assert s.run(DOUBLE, 2) == [4]


def test_a_slice_grows_with_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[pools.c]\nkind = "sge"\nnodes = 3\nqueue = "main.q"\npe = "nodes"\n'
    Path(tmp_path, "flowos.toml").write_text(f'{text}shared = "{SHARED}"\n')
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    with fo.slice(DOUBLE, pool="c", nodes=(0, 2), workers="process") as s:
        assert list(s.map(range(20))) == [[2 * i] for i in range(20)]


def test_a_job_that_is_cancelled_from_outside_ends_the_slice(provider: Provider) -> None:
    heard = Heard()
    with HeldSlice(provider, Ask(nodes=2), SliceOptions(), heard) as s:
        assert s.run(DOUBLE, 2) == [4]
        subprocess.run(("qdel", s.held.nodes[0].job), check=True, capture_output=True)
        assert comes(lambda: heard.whats[-1] == "ended")
        with pytest.raises(fo.SliceFreed, match="the slice has ended"):
            s.run(DOUBLE, 2)


DRIVER = """
import os, sys
import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import Ask, Launch, Pool
pool = Pool(name="killed", kind="sge", nodes=3, queue="main.q", pe="nodes", shared=sys.argv[1])
with HeldSlice(provider_of(pool), Ask(nodes=2), SliceOptions()) as s:
    hidden = "while :; do echo $$ > $0; sleep 0.1; done"
    words = [("sh", "-c", hidden, f"{sys.argv[2]}/{node.name}") for node in s.held.nodes]
    running = [n.start(Launch(argv=w)) for n, w in zip(s.held.nodes, words)]
    print(s.held.nodes[0].job, flush=True)
    running[0].wait()
"""


def test_nodes_are_freed_and_what_runs_there_ends_when_the_program_is_killed(
    tmp_path: Path,
) -> None:
    words = (sys.executable, "-c", DRIVER, str(SHARED), str(tmp_path))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout
        job = driver.stdout.readline().strip()
        assert comes(lambda: len(list(tmp_path.iterdir())) == 2)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert comes(lambda: job not in qstat().split())
    for file in tuple(tmp_path.iterdir()):
        file.unlink()
    time.sleep(0.5)
    assert not list(tmp_path.iterdir())


def test_what_ran_is_accounted_by_grid_engine(provider: Provider) -> None:
    leased = provider.hold(Ask())
    (node,) = leased.nodes
    burns = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.5: pass"
    assert node.run(Launch(argv=(sys.executable, "-c", burns))).ok
    provider.free(leased)

    def cpu_seconds() -> float:
        words = ("qacct", "-j", node.job)
        said = subprocess.run(words, capture_output=True, text=True).stdout
        rows = [line.split() for line in said.splitlines()]
        return max((float(row[1].rstrip("s")) for row in rows if row[:1] == ["cpu"]), default=0.0)

    assert comes(lambda: cpu_seconds() >= 0.5)


def test_a_flow_file_gives_the_same_here_and_on_nodes_of_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a_flow_file_gives_the_same_on(
        f'kind = "sge"\nnodes = 2\nqueue = "main.q"\npe = "nodes"\nshared = "{SHARED}"\n'
    )
