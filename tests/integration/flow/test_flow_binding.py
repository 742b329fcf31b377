"""A task that needs cores gets CPUs of its own, and its libraries as many threads."""

import os
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine.local._processors import usable_cores
from flowos.model import flow_input

CORES = usable_cores()
SAY = "echo $(env -u OMP_NUM_THREADS nproc) ${OMP_NUM_THREADS-none} ${OPENBLAS_NUM_THREADS-none}"


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_NUM_THREADS"):
            monkeypatch.delenv(name)


def said(needs: fo.Needs | None, **options: Any) -> list[str]:
    command = fo.command(["sh", "-c", SAY], needs=needs, **options)
    with fo.slice(command()) as s:
        (line,) = s.run()
    return str(line).split()


@pytest.mark.parametrize("cores", sorted({1, CORES}))
def test_a_command_that_asks_for_cores_gets_so_many(cores: int) -> None:
    assert said(fo.Needs(cores=cores)) == [str(cores)] * 3
    assert len(os.sched_getaffinity(0)) >= CORES


def test_a_command_that_says_nothing_or_is_alone_has_the_node() -> None:
    everything = str(len(os.sched_getaffinity(0)))
    for needs in (None, fo.Needs(), fo.Needs(gpus=0), fo.Needs(cores=1, alone=True)):
        assert said(needs) == [everything, "none", "none"]


def test_what_the_person_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    one = fo.Needs(cores=1)
    assert said(one, variables={"OMP_NUM_THREADS": "7"}) == ["1", "7", "none"]
    assert said(one, variables={"OPENBLAS_NUM_THREADS": "7"}) == ["1", "1", "7"]
    assert said(one, variables={"PATH": os.environ["PATH"]}, inherit=False) == ["1", "none", "none"]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert said(one) == ["1", "5", "none"]


def test_commands_at_once_have_different_cpus(tmp_path: Path) -> None:
    all_here = f"until [ $(ls {tmp_path} | wc -l) = {CORES} ]; do sleep 0.02; done"
    show = f"touch {tmp_path}/$$; {all_here}; grep Cpus_allowed_list /proc/self/status"
    command = fo.command(["sh", "-c", show], needs=fo.Needs(cores=1), limit_seconds=120.0)
    with fo.slice([command() for _ in range(CORES)]) as s:
        lines = [str(line).split()[1] for line in s.run()]
    assert len(set(lines)) == CORES


def worker_task(needs: fo.Needs | None) -> fo.Task:
    def seen(_: object) -> tuple[int, str]:
        return len(os.sched_getaffinity(0)), os.environ.get("OMP_NUM_THREADS", "none")

    ports = {"iport_nametypes": fo.int64, "oport_nametypes": fo.any_}
    return fo.task({"task_name": "seen", "fun": seen, **ports}, needs=needs)


@pytest.mark.parametrize("cores", sorted({1, CORES}))
def test_a_worker_runs_a_task_that_asks_for_cores_on_so_many(cores: int) -> None:
    flow = worker_task(fo.Needs(cores=cores))(flow_input("x", fo.int64))
    with fo.slice(flow, workers="process") as s:
        assert s.run(1) == [(cores, str(cores))]
        assert [r for (r,) in s.map(range(4))] == [(cores, str(cores))] * 4


def test_a_worker_has_all_cpus_again_for_the_next_task() -> None:
    x = flow_input("x", fo.int64)
    bound, free = worker_task(fo.Needs(cores=1)), worker_task(None)
    everything = len(os.sched_getaffinity(0))
    with fo.slice([t(x) for t in (bound, free) * 3], workers="process", cores=1) as s:
        for _ in range(3):
            results: list[Any] = s.run(1)
            assert [cpus for cpus, _ in results] == [1, everything] * 3
