"""Nodes of a real Slurm with devices besides CPUs, and with switches between them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, HoldEvent, Provider, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.contract.test_providers import flow_of
from tests.waiting import comes

from .box import Box
from .tasks import alone_on_fpga

_pools = iter(range(1_000_000))
FILES = {
    "gres.conf": """\
NodeName=n1 Name=fpga Count=2
NodeName=n2 Name=fpga Count=1 File=/dev/zero
NodeName=n3 Name=nic Count=1
""",
    "topology.conf": """\
SwitchName=s1 Nodes=n1,n3
SwitchName=s2 Nodes=n2,n4
SwitchName=top Switches=s[1-2]
""",
}


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(4, files=FILES, conf="TopologyPlugin=topology/tree\nGresTypes=fpga,nic\n") as box:
        yield box


@pytest.fixture(autouse=True)
def cluster(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    yield
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
    assert comes(lambda: set(box.ask("sinfo", "-hN", "-o", "%T").split()) == {"idle"})


@pytest.fixture
def provider(box: Box) -> Provider:
    name = f"place{next(_pools)}"
    return provider_of(Pool(name=name, kind="slurm", nodes=4, shared=str(box.shared)))


def on(provider: Provider, **asked: object) -> HeldSlice:
    return HeldSlice(provider, Ask(**asked), SliceOptions())  # type: ignore[arg-type]


HAS = flow_of(alone_on_fpga, fo.str_)


def test_tasks_have_the_devices_of_their_nodes(provider: Provider, tmp_path: Path) -> None:
    with on(provider, nodes=2, devices={"fpga": 1}) as s:
        assert s.nodes == ("n1", "n2")
        said = [result[0] for result in s.map(HAS, [str(tmp_path)] * 24)]
        assert set(said) == {"n1-0", "n1-1", "n2-0"}
        words = ["sh", "-c", "echo $SLURMD_NODENAME $FLOWOS_DEVICES_FPGA"]
        both = fo.command(words, stdout="said", needs=fo.Needs(devices={"fpga": 2}))
        with pytest.raises(fo.SliceRefused, match=r"needs 2 fpga, node n2 has 1$"):
            list(s.map(fo.flow_output(both()), range(3)))
        assert s.run(fo.flow_output(both())) == ["n1 0,1\n"]


def test_devices_that_the_cluster_lacks_are_refused_before_a_job_waits(
    provider: Provider, box: Box
) -> None:
    for asked, words in (
        ({"fgpa": 1}, "no node has a device 'fgpa'; did you mean 'fpga'"),
        ({"fpga": 3}, "1 node asked for, 0 of 4 have .*: 3 fpga asked for, n1 has 2"),
        ({"fpga": 1, "nic": 1}, "0 of 4 have what each has to have: 1 nic asked for, n1 has 0"),
    ):
        with pytest.raises(fo.SliceRefused, match=words):
            on(provider, devices=asked)
    assert box.ask("squeue", "--noheader") == ""


def switches(s: HeldSlice) -> list[str]:
    return [node.switch for node in s.held.nodes]


def test_nodes_are_packed_on_one_switch_or_spread(provider: Provider) -> None:
    for topology, words in (
        ("pack", "n1, n3 on s1"),
        ("switch", "n1, n3 on s1"),
        ("spread", "n1 on s1; n2 on s2"),
    ):
        with on(provider, nodes=2, topology=topology) as s:
            assert s.notes == (f"topology={topology!r}: {words}",)
    with on(provider, nodes=2) as s:
        assert (switches(s), s.notes) == (["s1", "s1"], ())


def test_one_switch_is_waited_for_where_pack_takes_what_there_is(provider: Provider) -> None:
    heard: list[HoldEvent] = []
    asked = Ask(nodes=2, topology="switch")
    with (
        ThreadPoolExecutor() as threads,
        on(provider, devices={"fpga": 2}) as n1,
        on(provider, devices={"fpga": 1}) as n2,
    ):
        assert (n1.nodes, n2.nodes) == (("n1",), ("n2",))
        with on(provider, nodes=2, topology="pack") as s:
            assert s.notes == ("topology='pack': n3 on s1; n4 on s2",)
        later = threads.submit(HeldSlice, provider, asked, SliceOptions(), heard.append)
        assert comes(lambda: [event.what for event in heard] == ["waiting"])
        n1.free()
        with later.result() as s:
            assert s.notes == ("topology='switch': n1, n3 on s1",)


def test_within_a_job_its_nodes_are_placed_by_us(
    provider: Provider, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sbatch", "--parsable", "--nodes=4", "--exclusive", "--time=50", "--output=/dev/null")
    job = box.ask(*words, "--wrap=sleep 1000")
    assert comes(lambda: box.ask("squeue", "-h", f"--jobs={job}", "--format=%T") == "RUNNING")
    monkeypatch.setenv("SLURM_JOB_ID", job)
    for topology, nodes, names in (
        ("switch", 2, {"n2", "n4"}),
        ("pack", 3, {"n1", "n3", "n2"}),
        ("spread", 2, {"n1", "n2"}),
    ):
        with on(provider, nodes=nodes, topology=topology) as s:
            assert set(s.nodes) == names
    with pytest.raises(fo.SliceRefused, match="3 nodes asked for, the largest, s1, has 2"):
        on(provider, nodes=3, topology="switch")
    with on(provider, nodes=1) as s:
        assert s.run(HAS, str(box.shared)) == ["n1-0"]
    box.ask("scancel", job)


def test_more_nodes_than_a_switch_has_are_refused_before_a_job_waits(
    provider: Provider, box: Box
) -> None:
    with pytest.raises(fo.SliceRefused, match="3 nodes asked for, the largest, s1, has 2"):
        on(provider, nodes=3, topology="switch")
    assert box.ask("squeue", "--noheader") == ""
