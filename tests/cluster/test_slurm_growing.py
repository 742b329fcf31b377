"""A slice that grows on a real Slurm: nodes come with the work, go when they are idle."""

import threading
import time
from collections.abc import Iterator

import pytest

import flowos as fo
from flowos.engine import (
    GrowingSlice,
    HeldSlice,
    Provider,
    SliceOptions,
    provider_of,
    waiting_tasks,
)
from flowos.model import Ask, Pool
from flowos.plan import NodeRange
from tests.contract.test_changed_holds import (  # noqa: F401 - tests that are collected here too
    test_a_wait_for_nodes_is_cancelled_from_another_thread,
    test_nodes_are_given_back_by_name,
)
from tests.contract.test_providers import DOUBLE, NAP, Heard
from tests.waiting import PATIENCE_SECONDS, comes

from .box import Box


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


@pytest.fixture
def several(box: Box) -> Provider:
    name = f"grows{time.monotonic_ns()}"
    return provider_of(Pool(name=name, kind="slurm", nodes=3, shared=str(box.shared)))


def grows(
    provider: Provider, heard: Heard, max_nodes: int = 2, idle_seconds: float = 0.5
) -> GrowingSlice:
    bounds = NodeRange(min_nodes=0, max_nodes=max_nodes, idle_seconds=idle_seconds)
    return GrowingSlice(provider, Ask(), SliceOptions(cores=1), heard, bounds=bounds)


def test_nodes_come_with_the_work_and_go_when_they_are_idle(several: Provider, box: Box) -> None:
    heard = Heard()
    with grows(several, heard) as s:
        assert box.ask("squeue", "--noheader") == ""
        for _ in range(2):
            assert list(s.map(NAP, [0.15] * 20)) == [[0.15]] * 20
            assert comes(lambda: box.ask("squeue", "--noheader") == "")
            assert comes(lambda: not s.nodes)
    assert heard.whats.count("held") >= 2
    assert heard.whats.count("resized") >= 2


def test_a_node_that_is_lost_is_replaced_by_one_that_comes(several: Provider, box: Box) -> None:
    heard = Heard()

    def items() -> Iterator[float]:
        yield from [0.1] * 20
        assert comes(lambda: "lost" in heard.whats)
        yield from [0.1] * 10

    with grows(several, heard, max_nodes=1, idle_seconds=100) as s:
        cancelled = threading.Thread(target=lambda: comes(lambda: bool(_cancelled(box))))
        results = s.map(NAP, items())
        assert next(results) == [0.1]
        cancelled.start()
        assert list(results) == [[0.1]] * 29
        cancelled.join()
        assert heard.whats.count("held") == 2
        assert "lost" in heard.whats


def _cancelled(box: Box) -> str:
    job = box.ask("squeue", "--noheader", "--format=%A").strip()
    if job:
        box.run("scancel", job)
    return job


def test_free_while_it_waits_in_the_queue_leaves_no_job(several: Provider, box: Box) -> None:
    heard = Heard()
    with HeldSlice(several, Ask(nodes=3), SliceOptions()):
        s = grows(several, heard)
        run = s.submit(DOUBLE, 1)
        assert comes(lambda: "waiting" in heard.whats)
        s.free()
        assert len(box.ask("squeue", "--noheader", "--format=%A").split()) == 1
        with pytest.raises(fo.SliceFreed):
            run.result(PATIENCE_SECONDS)


def test_what_waits_for_a_node_is_told_what_slurm_says(several: Provider) -> None:
    heard = Heard()
    with HeldSlice(several, Ask(nodes=2), SliceOptions()) as other, grows(several, heard) as s:

        def mapped() -> None:
            assert list(s.map(NAP, [0.2] * 40)) == [[0.2]] * 40

        mapping = threading.Thread(target=mapped)
        mapping.start()
        wanted = "for a node: the pool was asked for one, and said: "
        assert comes(lambda: len(s.nodes) == 1), "it waits for a second one"
        assert comes(lambda: [t for t in waiting_tasks("nap") if t.why.startswith(wanted + "Res")])
        other.free()
        mapping.join()
        assert comes(lambda: waiting_tasks("nap") == ())
