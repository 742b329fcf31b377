"""Within a job its nodes are used, and stay its own; the job is there as long as its user wants.

Some tests of `tests/contract/test_providers.py` run here too, within one job of three nodes.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Provider, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.contract.test_providers import (  # noqa: F401 - tests that are collected here too
    DOUBLE,
    Heard,
    flow_of,
    held,
    on,
    test_a_lease_ends_with_an_event_and_gives_all_back,
    test_a_refused_resize_leaves_what_is_held_as_it_was,
    test_as_many_nodes_are_held_as_were_asked_for,
    test_freeing_twice_is_once,
    test_nodes_that_lack_what_is_asked_of_each_are_refused,
    test_resizing_keeps_the_id_and_the_nodes_that_stay,
    test_what_a_pool_can_never_give_is_refused_at_once,
    test_who_asks_for_more_than_is_free_waits_and_hears_why,
)
from tests.waiting import comes

from .box import Box
from .tasks import job_of
from .test_box import processes_of, read_of

_pools = iter(range(1_000_000))


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(3) as box:
        yield box


@pytest.fixture(scope="module")
def job(box: Box) -> str:
    """Its number. It has ended with its box."""
    words = ("sbatch", "--parsable", "--nodes=3", "--exclusive", "--time=50", "--output=/dev/null")
    job = box.ask(*words, "--wrap=sleep 1000")
    assert comes(lambda: state(box, job) == "RUNNING")
    return job


def state(box: Box, job: str) -> str:
    return box.ask("squeue", "--noheader", f"--jobs={job}", "--format=%T")


def steps(box: Box) -> list[str]:
    said = box.ask("squeue", "--noheader", "--steps", "--format=%i")
    return [step for step in said.split() if not step.endswith(".batch")]


@pytest.fixture(autouse=True)
def within(box: Box, job: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The job goes on, without anything of a test."""
    names = {"SLURM_JOB_ID": job, "SLURM_JOB_PARTITION": "main", "SLURM_NTASKS": "1"}
    for name, value in {**box.variables, **names}.items():
        monkeypatch.setenv(name, value)
    yield
    assert comes(lambda: steps(box) == [])
    assert box.ask("squeue", "--noheader", "--format=%A %T") == f"{job} RUNNING"


def pool(box: Box, **keys: str) -> Pool:
    return Pool(name=f"j{next(_pools)}", kind="slurm", nodes=3, shared=str(box.shared), **keys)  # type: ignore[arg-type]


@pytest.fixture
def provider(box: Box) -> Provider:
    return provider_of(pool(box))


@pytest.fixture
def several(provider: Provider) -> Provider:
    return provider


def test_tasks_run_in_steps_of_the_job(provider: Provider, job: str) -> None:
    with on(provider, 2) as s:
        assert s.nodes == ("n1", "n2")
        assert s.held.until is not None, "that of the job"
        said = [result[0] for result in s.map(flow_of(job_of, fo.int64), range(4))]
        assert said == [f"{job} {x}" for x in range(4)]


def test_slices_of_one_program_share_no_node(box: Box) -> None:
    with on(provider_of(pool(box)), 2) as one, on(provider_of(pool(box))) as other:
        assert (one.nodes, other.nodes) == (("n1", "n2"), ("n3",))
        one.resize(1)
        other.resize(2)
        assert (one.nodes, other.nodes) == (("n1",), ("n3", "n2"))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (Ask(nodes=4), r"4 nodes asked for, job \d+ around this program has 3; unset SLURM_JOB_ID"),
        (Ask(seconds=7200), r"7200 s asked for, job \d+ around this program ends in \d+ s; unset"),
        (Ask(cores=100), r"0 of 1 have .*: 100 cores asked for, n1 has \d+, in job \d+; unset"),
    ],
)
def test_what_the_job_does_not_have_is_refused_in_one_line(
    provider: Provider, ask: Ask, says: str
) -> None:
    with pytest.raises(fo.SliceRefused, match=says) as refused:
        provider.hold(ask)
    assert "\n" not in str(refused.value)


def test_a_job_that_is_over_or_waits_is_said_to_be(
    provider: Provider, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = box.ask("sbatch", "--parsable", "--nodes=3", "--output=/dev/null", "--wrap=true")
    monkeypatch.setenv("SLURM_JOB_ID", waits)
    with pytest.raises(fo.SliceRefused, match=f"SLURM_JOB_ID={waits} does not run, but is PENDING"):
        provider.hold(Ask())
    box.run("scancel", waits)
    for id in (waits, "999999"):
        monkeypatch.setenv("SLURM_JOB_ID", id)
        with pytest.raises(fo.SliceRefused, match=f"the job of SLURM_JOB_ID={id} is over; unset"):
            provider.hold(Ask())


def test_a_pool_of_another_partition_holds_nodes_of_its_own(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_PARTITION", "other")
    waits: list[str] = []

    def heard(event: object) -> None:
        waits.append(str(event))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        provider_of(pool(box, partition="main")).hold(Ask(), heard)
    assert "waiting" in waits[0]


def test_the_job_goes_on_when_its_srun_is_killed(provider: Provider, box: Box) -> None:
    heard = Heard()
    with HeldSlice(provider, Ask(nodes=2), SliceOptions(), heard) as s:
        for pid in processes_of(box.folder):
            if read_of(pid, "cmdline")[:5] == b"srun\0":
                with suppress(ProcessLookupError):  # what the first one leaves is ended with it
                    os.kill(pid, signal.SIGKILL)
        assert comes(lambda: heard.whats[-1] == "ended")
        with pytest.raises(fo.SliceFreed, match="the slice has ended"):
            s.run(DOUBLE, 2)


def test_free_nodes_are_had_again(provider: Provider) -> None:
    for _ in range(2):
        with on(provider, 3) as s:
            assert s.run(DOUBLE, 1) == [2]
