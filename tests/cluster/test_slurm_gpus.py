"""Nodes of a real Slurm with GPUs, whose files are those of other devices."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Provider, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.contract.test_providers import flow_of
from tests.waiting import comes

from .box import MEMORY_MIB, Box
from .tasks import alone_on_gpu, visible

_pools = iter(range(1_000_000))
FILES = {
    "gres.conf": """\
NodeName=n1 Name=gpu Count=2 File=/dev/null,/dev/zero
NodeName=n2 Name=gpu Count=1 File=/dev/full
"""
}
ONE = fo.Needs(gpus=1)


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(3, files=FILES, conf="GresTypes=gpu\n") as box:
        yield box


@pytest.fixture(autouse=True)
def cluster(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")  # of the login node
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    settings = f'[pools.lab]\nkind = "slurm"\nnodes = 3\nshared = "{box.shared}"\n'
    (box.shared / "flowos.toml").write_text(settings)
    monkeypatch.setenv("FLOWOS_CONFIG", str(box.shared / "flowos.toml"))
    yield
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
    assert comes(lambda: set(box.ask("sinfo", "-hN", "-o", "%T").split()) == {"idle"})


@pytest.fixture
def provider(box: Box) -> Provider:
    name = f"gpus{next(_pools)}"
    return provider_of(Pool(name=name, kind="slurm", nodes=3, shared=str(box.shared)))


def said_of(needs: fo.Needs, name: str) -> fo.Flow:
    words = ["sh", "-c", "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES; sleep 0.02"]
    return fo.flow_output(fo.command(words, stdout="said", needs=needs, name=name)())


def test_tasks_share_no_gpu_of_their_nodes(provider: Provider, tmp_path: Path) -> None:
    with HeldSlice(provider, Ask(gpus=2), SliceOptions()) as s:
        assert s.nodes == ("n1",)
        alone = [
            result[0] for result in s.map(flow_of(alone_on_gpu, fo.str_), [str(tmp_path)] * 12)
        ]
        assert set(alone) == {"n1-0", "n1-1"}
        each = [s.submit(said_of(ONE, f"c{i}")) for i in range(4)]
        assert {run.result()[0] for run in each} == {"n1 0\n", "n1 1\n"}
        assert s.run(said_of(fo.Needs(gpus=2), "both")) == ["n1 0,1\n"]
        assert s.run(said_of(fo.Needs(), "none")) == ["n1 0,1\n"]  # as Slurm says
        assert {row[0] for row in s.map(flow_of(visible, fo.str_), "xyzw")} == {"0,1"}


def test_a_flow_asks_slurm_for_the_gpus_and_the_memory_that_its_tasks_need(box: Box) -> None:
    small, most = 1 << 20, (MEMORY_MIB << 20) // 2
    for needs, words, memory in (
        (fo.Needs(gpus=2, memory_bytes=small), "n1 0,1\n", 0),
        (fo.Needs(gpus=1, memory_bytes=most), "n1 0\n", 0),
    ):
        with fo.slice(said_of(needs, "c"), pool="lab") as s:
            job = box.ask("squeue", "-h", "--format=%b %m")
            assert job == f"gres:gpu:{needs.gpus} {memory}"
            assert s.run() == [words]
    with fo.slice(said_of(fo.Needs(), "c"), pool="lab", gpus=1):
        assert box.ask("squeue", "-h", "--format=%b") == "gres:gpu:1"
    with fo.slice(said_of(ONE, "c"), pool="lab", gpus=2) as s:
        assert box.ask("squeue", "-h", "--format=%b") == "gres:gpu:2"


def test_what_would_do_instead_is_asked_for_where_slurm_has_no_such_gpus(box: Box) -> None:
    words = ["sh", "-c", 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES/$OMP_NUM_THREADS"']
    for gpus, asked, said in ((2, "gres:gpu:2", "n1 0,1/\n"), (3, "N/A", "n1 /2\n")):
        needs = (fo.Needs(gpus=gpus), fo.Needs(cores=2))
        flow = fo.flow_output(fo.command(words, stdout="said", needs=needs)())
        with fo.slice(flow, pool="lab") as s:
            assert box.ask("squeue", "-h", "--format=%b") == asked
            assert s.run() == [said]


def test_more_gpus_or_memory_than_a_node_has_are_refused_before_a_job_waits(box: Box) -> None:
    whole = MEMORY_MIB << 20
    for asked, words in (
        ({"gpus": 3}, "1 node asked for, 0 of 3 have .*: 3 GPUs asked for, n1 has 2$"),
        ({"gpus": 1, "nodes": 3}, "3 nodes asked for, 2 of 3 .*: 1 GPU asked for, n3 has 0$"),
        ({"memory_bytes": whole + 1}, f"{whole + 1} bytes of memory asked for, n1 has {whole}$"),
    ):
        with pytest.raises(fo.SliceRefused, match=words):
            fo.slice(pool="lab", **asked)  # type: ignore[call-overload]
    assert box.ask("squeue", "--noheader") == ""
