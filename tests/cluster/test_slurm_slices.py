"""Nodes of a real Slurm keep what every provider promises, and run flows.

The tests of `tests/contract/test_providers.py` run here too, on a pool of this kind.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.engine import HeldSlice, Node, Provider, SliceOptions, provider_of
from flowos.engine.slurm._allocation import Allocation, allocate
from flowos.model import Ask, Exited, Launch, Pool
from tests.contract.test_held_time import (  # noqa: F401 - collected here too
    test_a_task_begins_only_on_nodes_that_are_held_for_long_enough,
)
from tests.contract.test_providers import (  # noqa: F401 - `held` is a fixture
    DOUBLE,
    Heard,
    flow_of,
    held,
    on,
    promises,
)
from tests.waiting import PATIENCE_SECONDS, comes

from .array_tasks import filled, keeps, spoil
from .box import Box
from .on_nodes import (  # noqa: F401 - tests that are collected here too
    FLOW,
    FLOWOS,
    a_flow_file_gives_the_same_on,
    test_a_worker_that_dies_is_told_with_its_task_and_its_last_words,
    test_another_one_at_the_disk_of_a_node_is_seen,
    test_arrays_cross_between_this_machine_and_the_nodes,
    test_progress_names_the_task_that_runs_or_none,
    test_what_others_do_on_a_node_is_seen,
)
from .tasks import in_step

globals().update(
    promises(
        but={
            "test_what_ends_with_this_program_is_not_leased": "Slurm leases: test_slurm_leases",
            "test_tasks_that_run_flows_on_full_nodes_go_on": (
                "its task has the slice itself, which a worker process on a node cannot"
            ),
        }
    )
)
_pools = iter(range(1_000_000))


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(3) as box:
        yield box


@pytest.fixture(autouse=True)
def cluster(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is left of a test is nothing."""
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    yield
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
    assert comes(lambda: set(box.ask("sinfo", "-hN", "-o", "%T").split()) == {"idle"})


def pool(box: Box, **keys: object) -> Pool:
    name = f"slurm{next(_pools)}"
    return Pool(name=name, kind="slurm", nodes=3, shared=str(box.shared), **keys)  # type: ignore[arg-type]


@pytest.fixture
def provider(box: Box) -> Provider:
    return provider_of(pool(box))


@pytest.fixture
def limited(box: Box) -> Provider:
    return provider_of(pool(box, max_seconds=50.0))


@pytest.fixture
def several(provider: Provider) -> Provider:
    return provider


def test_python_tasks_run_in_steps_of_the_job_and_print_here(
    provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    with on(provider, 2) as s:
        said = [result[0] for result in s.map(flow_of(in_step, fo.int64), range(40))]
        assert set(map(str, said)) == {"n1 True", "n2 True"}
    out, err = capsys.readouterr()
    assert sorted(out.split()) == sorted(" ".join(f"out {i}" for i in range(40)).split())
    assert err.count("err ") == 40


def test_notes_say_that_tasks_on_nodes_pass_large_arrays_by_way_of_this_program(
    provider: Provider,
) -> None:
    large = fo.array(fo.float64, (5_000, 1_000))

    @fo.task
    def made(n: fo.int64) -> large:  # type: ignore[valid-type]
        return np.full((5_000, 1_000), n)

    @fo.task
    def total(a: large) -> fo.float64:  # type: ignore[valid-type]
        return float(a.sum())  # type: ignore[attr-defined]

    array = made(fo.flow_input("n", fo.int64))
    flow = fo.flow_output(total(array), total(array))
    with on(provider) as s:
        s.opened(flow)
        (note,) = s.notes
    assert note.startswith("tasks pass 80 MB of arrays on in a run, by way of this program; worke")
    with fo.slice(flow, workers="process") as here:
        assert here.notes == ()


def test_a_task_on_a_node_may_write_to_its_array_and_no_other_sees_it(provider: Provider) -> None:
    x = fo.flow_input("x", fo.int64)
    constant = fo.flow_output(spoil(np.ones(20_000), x))
    shared = filled(x)
    several = fo.flow_output(spoil(shared, 0), spoil(shared, 1), shared)
    with on(provider) as s:
        assert list(s.map(constant, range(50))) == [[20_000.0 + i] for i in range(50)]
        for _ in range(2):
            first, second, array = s.run(several, 2)
            assert (first, second) == (40_000.0, 40_001.0)
            assert np.array_equal(array, np.full(20_000, 2.0))  # type: ignore[arg-type]


def test_arrays_that_are_kept_stay_as_they_came_when_others_come(provider: Provider) -> None:
    makes = fo.flow_output(filled(fo.flow_input("x", fo.int64)))
    looks = fo.flow_output(keeps(fo.flow_input("a", fo.array(fo.float64))))
    with on(provider) as s:
        arrays: list[Any] = [s.run(makes, x)[0] for x in range(6)]
        assert [s.run(looks, array)[0] for array in arrays] == [True] * 6
        assert [np.unique(array).tolist() for array in arrays] == [[float(x)] for x in range(6)]


@pytest.fixture
def node(provider: Provider) -> Iterator[Node]:
    leased = provider.hold(Ask())
    yield leased.nodes[0]
    provider.free(leased)


def test_commands_run_on_the_node_as_they_would_here(node: Node) -> None:
    script = "cat; echo err >&2; echo $SLURMD_NODENAME; pwd; exit 3"
    outcome = node.run(Launch(argv=("sh", "-c", script), cwd=Path("/tmp")), stdin=b"given ")
    assert outcome.end == Exited(3)
    assert (outcome.stdout, outcome.stderr) == (b"given n1\n/tmp\n", b"err\n")
    missing = node.run(Launch(argv=("no-such-program",)))
    assert "no such command" in str(missing.end)


def test_a_command_ends_when_it_is_stopped_and_over_its_time_limit(node: Node) -> None:
    limited = node.run(Launch(argv=("sleep", "1000"), limit_seconds=0.3))
    assert "limit" in str(limited.end)
    running = node.start(Launch(argv=("sleep", "1000")))
    running.stop(0.0)
    assert "request" in str(running.wait(PATIENCE_SECONDS).end)


def test_a_job_that_is_cancelled_from_outside_ends_the_slice(provider: Provider, box: Box) -> None:
    heard = Heard()
    with HeldSlice(provider, Ask(nodes=2), SliceOptions(), heard) as s:
        assert s.run(DOUBLE, 2) == [4]
        box.run("scancel", box.ask("squeue", "--noheader", "--format=%A"))
        assert comes(lambda: heard.whats[-1] == "ended")
        with pytest.raises(fo.SliceFreed, match="the slice has ended"):
            s.run(DOUBLE, 2)


def test_a_slice_that_nobody_has_any_more_leaves_no_job(provider: Provider, box: Box) -> None:
    s = on(provider, 3)
    assert s.run(DOUBLE, 1) == [2]
    del s
    assert comes(lambda: box.ask("squeue", "--noheader") == "")


def test_threads_of_this_process_cannot_run_there(provider: Provider) -> None:
    with (
        HeldSlice(provider, Ask(), SliceOptions(workers="thread")) as s,
        pytest.raises(fo.SliceRefused, match=r"on node n1: Python task 'double' would run on this"),
    ):
        s.run(DOUBLE, 1)


def test_a_folder_that_nodes_do_not_see_is_refused(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = provider_of(pool(box))
    monkeypatch.setattr("flowos.engine.slurm._slurm_provider.allocate", _without_proof)
    with pytest.raises(fo.SliceRefused, match=r"node n1 does not see folder .*shared = a folder"):
        blind.hold(Ask())
    gone = Pool(name="gone", kind="slurm", shared=str(tmp_path))
    tmp_path.chmod(0o500)
    if os.geteuid():
        with pytest.raises(fo.SliceRefused, match=r"shared folder .*Permission denied"):
            provider_of(gone).hold(Ask())
    tmp_path.chmod(0o700)


def _without_proof(*given: Any, proof: Path, **options: Any) -> Allocation:
    options["proof"] = proof.with_name("elsewhere")
    return allocate(*given, **options)


def test_what_slurm_would_let_wait_for_ever_is_refused_and_leaves_no_job(box: Box) -> None:
    events = Heard()
    with pytest.raises(fo.SliceRefused, match=r"7200 s asked for, partition 'main' gives 3600 s"):
        provider_of(pool(box)).hold(Ask(seconds=7200.0), events)
    assert not events.events
    assert box.ask("squeue", "--noheader") == ""
    assert not list(box.shared.iterdir())


def test_a_pool_that_allows_more_time_than_its_partition_is_refused_alike(box: Box) -> None:
    with pytest.raises(fo.SliceRefused, match=r"7200 s asked for, partition 'main' gives 3600 s"):
        provider_of(pool(box, max_seconds=7200.0)).hold(Ask())
    assert box.ask("squeue", "--noheader") == ""


def test_what_slurm_does_not_know_is_refused_with_the_nearest_name(box: Box) -> None:
    with pytest.raises(fo.SliceRefused, match=r"'mian'.*main"):
        provider_of(pool(box, partition="mian")).hold(Ask())


def test_without_a_shared_folder_the_current_one_is_taken_for_as_long_as_nodes_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_of(Pool(name=f"slurm{next(_pools)}", kind="slurm", nodes=3))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    with on(provider) as s:
        monkeypatch.chdir(tmp_path / "other")
        assert s.run(DOUBLE, 1) == [2]
        assert s.held.nodes[0].folder().is_relative_to(tmp_path / "one")
    assert not [*tmp_path.rglob("*/*")]
    (tmp_path / "other").rmdir()
    with pytest.raises(fo.SliceRefused, match=r"shared folder .the current one.: No such file"):
        provider.hold(Ask())


def test_nothing_stays_in_the_shared_folder(provider: Provider, box: Box) -> None:
    leased = provider.hold(Ask())
    leased.nodes[0].run(Launch(argv=("true",)))
    folder = leased.nodes[0].folder()
    assert list(folder.iterdir()) == [folder / "init"]
    provider.free(leased)
    assert not list(box.shared.iterdir())


def test_a_flow_file_gives_the_same_here_and_on_nodes_of_the_pool(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a_flow_file_gives_the_same_on(f'kind = "slurm"\nnodes = 2\nshared = "{box.shared}"\n')


def test_what_is_asked_of_no_pool_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    for given, says in (
        (("--nodes", "2"), "--nodes is asked of a pool: add --pool NAME"),
        (("--pool", "nope"), "no pool 'nope'"),
    ):
        words = (FLOWOS, "run", "flow.py", "n=5", *given)
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode != 0
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
