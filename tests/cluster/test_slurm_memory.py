"""Jobs that are given some of the memory of their nodes, which Slurm says of the job alone."""

from collections.abc import Iterator

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Provider, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.contract.test_providers import flow_of
from tests.waiting import comes

from .box import Box
from .tasks import length

CONF = "SelectTypeParameters=CR_Core_Memory\nDefMemPerNode=64\n"
GIVEN = 64 << 20


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(conf=CONF) as box:
        yield box


@pytest.fixture
def provider(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    yield provider_of(Pool(name="c", kind="slurm", nodes=2, shared=str(box.shared)))
    box.run("scancel", "--me")
    assert comes(lambda: box.ask("squeue", "--noheader") == "")


def test_what_a_node_has_is_the_memory_that_its_job_was_given(provider: Provider) -> None:
    with HeldSlice(provider, Ask(nodes=2), SliceOptions()) as s:
        whole = [node.ledger.whole.memory_bytes for node in s.held.nodes]
        assert whole == [GIVEN, GIVEN]
        with pytest.raises(fo.ValueRefused, match=rf"the memory of n1.* {GIVEN} "):
            s.run(flow_of(length, fo.bytes_), bytes(GIVEN + 1))
    with HeldSlice(provider, Ask(memory_bytes=GIVEN // 2), SliceOptions()) as s:
        assert s.run(flow_of(length, fo.bytes_), bytes(9)) == [9]


def test_more_memory_than_the_job_around_a_program_was_given_is_refused(
    box: Box, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sbatch", "--parsable", "--exclusive", "--time=50", "--output=/dev/null")
    job = box.ask(*words, "--mem-per-cpu=8M", "--wrap=sleep 1000")
    assert comes(lambda: box.ask("squeue", "-hj", job, "--format=%T") == "RUNNING")
    monkeypatch.setenv("SLURM_JOB_ID", job)
    whole = provider.hold(Ask(memory_bytes=32 << 20))
    (node,) = whole.nodes
    assert node.ledger.whole.memory_bytes == 32 << 20
    provider.free(whole)
    with pytest.raises(fo.SliceRefused, match=rf"n1 has {32 << 20}, in job {job}"):
        provider.hold(Ask(memory_bytes=33 << 20))
