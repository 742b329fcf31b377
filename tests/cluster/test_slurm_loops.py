"""Loops run on nodes of Slurm: within their workers, and task by task."""

import os
from collections.abc import Iterator

import pytest

import flowos as fo
from flowos.engine import provider_of
from flowos.model import Pool
from tests.contract.test_providers import on

from .box import Box


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(1) as box:
        yield box


@pytest.mark.parametrize("retries", [0, 1])
def test_a_loop_runs_on_a_node_and_its_errors_say_the_round(
    box: Box, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    @fo.task(retries=retries)
    def down(x: fo.int64) -> fo.int64:
        if x == 100:
            os.kill(os.getpid(), 9)
        return 6 // (x - 3) * 0 + x - 1

    @fo.task
    def is_zero(x: fo.int64) -> bool:
        return x == 0

    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    pool = Pool(name=f"loops{retries}", kind="slurm", nodes=1, shared=str(box.shared))
    looped = fo.loop(down, fo.flow_input("x", fo.int64), until=is_zero, max_rounds=9)
    flow = fo.flow_output(looped)
    with on(provider_of(pool)) as s:
        assert s.run(flow, 2) == [0]
        with pytest.raises(fo.TaskFailed, match=r"'loop/down' raised Zero.*; round 3 of 'loop'"):
            s.run(flow, 5)
        with pytest.raises(fo.RoundLimitExceeded, match="task 'loop' is not done after 9 rounds"):
            s.run(flow, -1)
        with pytest.raises(
            fo.WorkerLost, match="'loop/down': its worker process on node n1 is gone"
        ):
            s.run(flow, 100)
