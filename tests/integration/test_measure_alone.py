"""`fo.measure` has its nodes for itself: no task of this program's slices runs there meanwhile."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest

import flowos as fo
from flowos.engine import here, in_a_task
from flowos.engine._alone import _WORKER_MODULES
from flowos.engine.local._processors import usable_cores
from flowos.model import Progress, UsageError, flow_input
from flowos.operations._scratch import own_storage_of, scratch_of
from flowos.operations.measure._prepare import ready_run
from flowos.probes.command import TimedCommand
from tests.askers import NoAsker
from tests.waiting import PATIENCE_SECONDS, comes, in_a_thread

IN_A_TASK = "measure: called by a task of a slice, which runs meanwhile: call it outside of tasks"
CORES = usable_cores()
FAKE = '[pools.two]\nkind = "fake"\nnodes = 2\n'


pytestmark = pytest.mark.usefixtures("looked_once")


@pytest.fixture(autouse=True)
def _all_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    Path("flowos.toml").write_text(FAKE)
    yield
    ledger = here().ledger
    assert sorted(ledger.idle) == sorted(os.sched_getaffinity(0))[:CORES]
    assert not ledger.line


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of a command where five tell enough; at most three more on a busy machine."""
    monkeypatch.setattr(TimedCommand, "info", replace(TimedCommand.info, rounds=2))


def begun(act: Callable[[], object]) -> Callable[[], Any]:
    """In a thread; the function that is returned waits for what it gives, or raises."""
    thread, answers = in_a_thread(act)

    def answer() -> object:
        thread.join(PATIENCE_SECONDS)
        assert answers, "it hangs"
        return answers[0]

    return answer


def test_no_task_runs_while_it_measures_and_those_go_on_after_it(tmp_path: Path) -> None:
    inside, stop = tmp_path / "inside", threading.Event()
    runs: list[int] = []

    @fo.task(needs=fo.Needs(cores=CORES))
    def work(x: fo.int64) -> fo.int64:
        inside.touch()
        stop.wait(0.02)
        inside.unlink()
        return x

    with fo.slice(work(flow_input("x", fo.int64))) as s:

        def repeat() -> int:
            while not stop.is_set():
                runs.append(len(s.run(1)))
            return len(runs)

        answer = begun(repeat)
        result = fo.measure(commands=[["sh", "-c", f"sleep 0.01; test ! -e {inside}"]])
        measured = len(runs)
        assert comes(lambda: len(runs) >= measured + 2)
        stop.set()
        assert answer() >= measured + 2
    assert result.failed == ()
    assert result.report.measurements
    assert measured > 0


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("way", ["map", "as_completed"])
def test_a_task_that_waited_for_others_does_not_go_on_while_it_measures(
    way: str, tmp_path: Path
) -> None:
    """Its core is lent meanwhile, and may not be there when it goes on."""
    inside, began = tmp_path / "inside", threading.Event()
    inner = fo.slice(fo.flow_output(fo.task(shortly)(flow_input("x", fo.int64))))

    @fo.task
    def outer(x: fo.int64) -> fo.int64:
        began.set()
        if way == "map":
            list(inner.map([(x,)] * 6))
        else:
            list(fo.as_completed([inner.submit(x) for _ in range(6)]))
        inside.touch()
        time.sleep(0.3)
        inside.unlink()
        return x

    with inner, fo.slice(outer(flow_input("x", fo.int64))) as s:
        for _ in range(3):
            run = s.submit(1)
            assert began.wait(PATIENCE_SECONDS)
            result = fo.measure(commands=[["sh", "-c", f"sleep 0.01; test ! -e {inside}"]])
            assert result.failed == ()
            assert run.result(PATIENCE_SECONDS) == [1]
            began.clear()


def shortly(x: int) -> int:
    time.sleep(0.1)
    return x


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("how", ["thread", "inline"])
def test_what_it_calls_while_it_measures_cannot_run_a_slice(how: Any) -> None:
    refused: list[str] = []

    def on_progress(_: Progress) -> None:
        runs: list[Callable[[], Any]] = [
            lambda: [s.run(1), s.run(1)],
            lambda: list(s.map([(1,), (2,)])),
            lambda: s.submit(1).result(),
            fo.measure,
        ]
        for run in runs:
            try:
                run()
            except (fo.SliceRefused, UsageError) as error:
                refused.append(str(error))

    with fo.slice(fo.task(shortly)(flow_input("x", fo.int64)), workers=how) as s:
        result = fo.measure(commands=["true"], seconds=5, on_progress=on_progress)
        assert result.report.measurements
        assert s.run(1) == [1]
    assert set(refused) == {
        "slice: nothing runs in on_progress of a measurement: run it after that",
        "measure: called by on_progress of a measurement: call it after that",
    }


@pytest.mark.usefixtures("few_rounds")
def test_two_measurements_of_one_program_follow_one_another(tmp_path: Path) -> None:
    one = tmp_path / "one"
    command = ["sh", "-c", f"mkdir {one} && sleep 0.02 && rmdir {one}"]
    first, second = (begun(lambda: fo.measure(commands=[command])) for _ in range(2))
    assert [first().failed, second().failed] == [(), ()]


@pytest.mark.usefixtures("few_rounds")
def test_it_waits_for_tasks_as_long_as_it_may_measure_and_names_them() -> None:
    go_on = threading.Event()
    seen: list[Progress] = []

    @fo.task
    def long(x: fo.int64) -> fo.int64:
        assert go_on.wait(PATIENCE_SECONDS)
        return x

    with fo.slice(long(flow_input("x", fo.int64))) as s:
        run = s.submit(1)
        name = here().name
        with pytest.raises(fo.SliceRefused) as caught:
            fo.measure(commands=["true"], seconds=0.3, on_progress=seen.append)
        assert str(caught.value) == (
            f"measure: tasks of this program on {name} (long) did not end within 0.3 s: "
            "measure after that"
        )
        go_on.set()
        assert run.result(PATIENCE_SECONDS) == [1]
        assert fo.measure(commands=["true"]).report.measurements
    waits = f"waits for tasks of this program on {name} (long) to end"
    assert [each.doing for each in seen].count(waits) == 1


def test_it_says_that_another_measurement_is_under_way() -> None:
    ledger = here().ledger
    grant = ledger.acquire(fo.Needs(alone=True), NoAsker())
    assert grant is not None
    with pytest.raises(fo.SliceRefused, match="what else this program measures or runs on"):
        fo.measure(commands=["true"], seconds=0.1)
    ledger.release(grant)


def test_both_its_waits_together_take_no_longer_than_it_may_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second one begins with nothing left: it is refused before it is said."""
    seen: list[str] = []
    ledger = here().ledger
    grants = [ledger.acquire(fo.Needs(), NoAsker())]

    def give_back() -> None:
        grant = grants.pop()
        assert grant is not None
        ledger.release(grant)
        ledger.wake_askers()

    def late(progress: Progress) -> None:
        if progress.doing.startswith("waits for "):
            seen.append(progress.doing)
            time.sleep(0.2)
            give_back()

    @contextmanager
    def then_taken(*asked: Any) -> Iterator[Any]:
        with ready_run(*asked) as ready:
            grants.append(ledger.acquire(fo.Needs(), NoAsker()))
            yield ready

    monkeypatch.setattr("flowos.operations.measure._session.ready_run", then_taken)
    with pytest.raises(fo.SliceRefused, match=r"did not end within 0\.1 s: measure after that"):
        fo.measure(commands=["true"], seconds=0.1, on_progress=late)
    give_back()
    assert len(seen) == 1


@pytest.mark.parametrize("workers", ["thread", "inline", "process"])
@pytest.mark.parametrize("pool", [None, "two"])
def test_a_task_that_measures_is_refused(
    workers: Literal["thread", "inline", "process"], pool: str | None
) -> None:
    @fo.task
    def inside(x: fo.int64) -> fo.int64:
        import flowos as fo

        fo.measure("parallel_io", pool=pool) if pool else fo.measure(commands=["true"])
        return x

    flow = fo.flow_output(inside(flow_input("x", fo.int64)))
    with fo.slice(flow, workers=workers) as s, pytest.raises(fo.TaskFailed) as caught:
        s.run(1)
    assert IN_A_TASK in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", _WORKER_MODULES)
def test_a_module_of_workers_says_that_this_process_is_none(name: str) -> None:
    assert import_module(name).is_worker is False
    assert not in_a_task()


def test_a_thread_that_a_task_waits_for_does_not_hang() -> None:
    @fo.task
    def asks(word: fo.str_) -> fo.str_:
        error = begun(lambda: fo.measure(commands=[word], seconds=0.3))()
        assert isinstance(error, fo.SliceRefused)
        raise error

    refused = pytest.raises(fo.TaskFailed, match=r"\(asks\) did not end within 0.3 s")
    with fo.slice(asks(flow_input("word", fo.str_))) as s, refused:
        s.run("true")


@pytest.mark.usefixtures("few_rounds")
def test_it_measures_between_results_of_a_map() -> None:
    @fo.task
    def same(x: fo.int64) -> fo.int64:
        return x

    with fo.slice(same(flow_input("x", fo.int64))) as s:
        results = s.map(range(20))
        assert next(results) == [0]
        assert fo.measure(commands=["true"]).report.measurements
        assert list(results) == [[x] for x in range(1, 20)]


def test_it_measures_between_nodes_of_a_pool(tmp_path: Path) -> None:
    Path("flowos.toml").write_text(FAKE.replace("two", "pair"))  # whose nodes no other test used
    result = fo.measure("parallel_io", pool="pair", scratch=".")
    run = result.report.run
    assert run.deployment is not None
    assert run.deployment.pool == "pair"
    assert [node.name for node in run.deployment.nodes] == ["pair-1", "pair-2"]
    assert (run.request.nodes, run.request.scratch) == (2, tmp_path)
    assert {dict(m.case.levels)["clients"] for m in result.report.measurements} == {"1", "2"}
    assert result.lost == ""


@pytest.mark.usefixtures("few_rounds")
def test_by_default_a_pools_shared_folder_is_measured_and_var_tmp_where_it_has_none() -> None:
    Path("flowos.toml").write_text(FAKE + '[pools.s]\nkind = "slurm"\nnodes = 2\nshared = "/all"\n')
    found = [str(scratch_of(pool)) for pool in (None, "two", "s")]
    assert found == ["/var/tmp", "/var/tmp", "/all"]
    with pytest.raises(UsageError, match="no pool 'tow' in"):
        scratch_of("tow")
    run = fo.measure(commands=["true"], scratch=None).report.run
    assert str(run.request.scratch) == "/var/tmp"


def test_the_own_storage_of_nodes_is_what_their_pool_names() -> None:
    Path("flowos.toml").write_text(FAKE + '[pools.s]\nkind = "slurm"\nscratch = "/local"\n')
    found = [str(own_storage_of(pool)) for pool in (None, "two", "s")]
    assert found == ["/var/tmp", "/var/tmp", "/local"]
    with pytest.raises(UsageError, match="no pool 'tow' in"):
        own_storage_of("tow")


def test_nodes_that_are_refused_or_lost_are_said() -> None:
    Path("flowos.toml").write_text(FAKE + 'script = ["refuse quota exceeded", "lose 2 after 0.5"]')
    with pytest.raises(fo.SliceRefused, match="pool two: quota exceeded"):
        fo.measure("mpi", pool="two", nodes=2)
    result = fo.measure("mpi", pool="two", nodes=2, seconds=60, scratch=".")
    assert result.lost == "node two-2 was lost: the node does not answer"


@pytest.mark.parametrize(
    ("asked", "kind", "says"),
    [
        ({"pool": "tow"}, UsageError, "no pool 'tow' in"),
        ({"pool": "two", "nodes": 3}, fo.SliceRefused, "pool two: 3 nodes asked for, it has 2"),
        ({"pool": "local"}, fo.SliceRefused, "pool local: 2 nodes asked for, it has 1"),
    ],
)
def test_a_pool_without_these_nodes_is_one_line(
    asked: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind) as caught:
        fo.measure("mpi", **asked)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_probes_that_are_not_between_nodes_are_refused_before_any_is_held() -> None:
    Path("flowos.toml").write_text(FAKE + 'script = ["refuse it was asked"]')
    with pytest.raises(UsageError, match="probe 'stream' does not measure between nodes; mpi"):
        fo.measure("stream", pool="two")
    with pytest.raises(UsageError, match=r"^no probe is called 'nosuch'; the probes are "):
        fo.measure("nosuch", pool="two")
