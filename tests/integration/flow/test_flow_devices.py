"""Tasks that need devices besides CPUs: variables say which they have, and they share none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Provider, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.contract.test_providers import flow_of
from tests.integration.flow.fpga_tasks import FPGA, all_of_them, alone_at_it, without


@pytest.fixture
def provider() -> Provider:
    return provider_of(Pool(name="f", kind="fake", cores=4, gres="fpga:2,nic-2"))


@pytest.fixture
def held(provider: Provider) -> Iterator[HeldSlice]:
    with HeldSlice(provider, Ask(devices={"fpga": 1}), SliceOptions()) as s:
        yield s


ALONE, WITHOUT = flow_of(alone_at_it, fo.str_), flow_of(without, fo.str_)


def test_no_two_tasks_have_the_same_device_at_once(held: HeldSlice, tmp_path: Path) -> None:
    said = [result[0] for result in held.map(ALONE, [str(tmp_path)] * 12)]
    assert set(said) == {"0", "1"}


def test_a_worker_that_had_a_device_tells_the_next_task_nothing_of_it(held: HeldSlice) -> None:
    both = fo.flow_output(*(task("x") for task in (all_of_them, without)))
    for _ in range(3):
        assert held.run(both) == ["0,1 0", "none none"]


def test_commands_have_the_variables_too(held: HeldSlice, tmp_path: Path) -> None:
    script = 'mkdir "$0/at$FLOWOS_DEVICES_FPGA" && sleep 0.02 && rmdir "$0"/at$FLOWOS_DEVICES_FPGA'
    words = ["sh", "-c", f"{script} && echo $FLOWOS_DEVICES_FPGA", tmp_path]
    tasks = [fo.command(words, stdout="said", needs=FPGA, name=f"c{i}")() for i in range(6)]
    assert set(held.run(fo.flow_output(*tasks))) == {"0\n", "1\n"}


def test_a_flow_waits_for_devices_and_gets_those_that_are_free(
    held: HeldSlice, tmp_path: Path
) -> None:
    tasks = [(alone_at_it if i % 2 else without)(str(tmp_path)) for i in range(10)]
    tasks.append(all_of_them("x"))
    said = held.run(fo.flow_output(*tasks))
    assert said[-1] == "0,1 0"
    assert {said[i] for i in range(1, 10, 2)} <= {"0", "1"}


def test_threads_cannot_tell_their_tasks_apart(provider: Provider) -> None:
    with (
        HeldSlice(provider, Ask(), SliceOptions(workers="thread")) as s,
        pytest.raises(fo.SliceRefused, match="'alone_at_it' needs devices, and threads share"),
    ):
        s.run(ALONE, "x")


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ({"fgpa": 1}, r"task 'f' needs 1 fgpa, node f-1 has 0; did you mean 'fpga'\?$"),
        ({"fpga": 3}, "task 'f' needs 3 fpga, node f-1 has 2$"),
        ({"x": 1}, "task 'f' needs 1 x, node f-1 has 0$"),
    ],
)
def test_a_task_whose_devices_its_node_lacks_is_refused(
    held: HeldSlice, needs: dict[str, int], words: str
) -> None:
    @fo.task(needs=fo.Needs(devices=needs), name="f")
    def task(x: fo.int64) -> fo.int64:
        return x

    with pytest.raises(fo.SliceRefused, match=words):
        held.run(flow_of(task, fo.int64), 1)


def test_a_slice_of_a_flow_asks_for_what_its_tasks_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flowos.toml").write_text('[pools.f]\nkind = "fake"\ngres = "fpga:1,nic-2"\n')
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    with fo.slice(alone_at_it(fo.flow_input("x", fo.str_)), pool="f") as s:
        assert s.run(str(tmp_path)) == ["0"]
    two = "pool f: 2 fpga asked for, f-1 has 1"
    with pytest.raises(fo.SliceRefused, match=two):
        fo.slice(all_of_them(fo.flow_input("x", fo.str_)), pool="f")
    with pytest.raises(fo.SliceRefused, match=r"no node has a device 'fgpa'; did you mean 'fpga'"):
        fo.slice(pool="f", devices={"fgpa": 1})
    with pytest.raises(fo.SliceRefused, match="slice: devices: fpga=-1; expected a positive int"):
        fo.slice(pool="f", devices={"fpga": -1})
    with pytest.raises(fo.SliceRefused, match="devices is asked of a pool: add pool='local'"):
        fo.slice(all_of_them("x"), devices={"fpga": 1})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"topology": "ring"}, "slice: topology='ring'; expected one of pack, spread, switch"),
        ({"topology": "pack"}, "pool f: topology='pack': it has no switches"),
        ({"topology": "pack", "nodes": (0, 2)}, "topology is of nodes held at once, and one that"),
    ],
)
def test_nodes_that_cannot_be_so_to_each_other_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object], words: str
) -> None:
    (tmp_path / "flowos.toml").write_text('[pools.f]\nkind = "fake"\nnodes = 2\n')
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    with pytest.raises(fo.SliceRefused, match=words):
        fo.slice(pool="f", **asked)  # type: ignore[call-overload]


def test_runs_go_where_their_devices_are_configured_and_notes_say_so() -> None:
    pool = Pool(name="two", kind="fake", nodes=2, cores=2, gres="fpga:1,nic-2")
    every = flow_of(all_of_them, fo.str_)
    words = ["sh", "-c", "echo $FLOWOS_DEVICES_FPGA"]
    flow = fo.flow_output(fo.command(words, stdout="said", needs=FPGA, name="say")())
    other = fo.flow_output(fo.command(words, stdout="said", needs=FPGA, name="too")())
    with HeldSlice(provider_of(pool), Ask(nodes=2), SliceOptions()) as s:
        for each in (flow, other, flow, other):
            assert s.run(each) == ["0\n"]
            assert s.submit(each).result() == ["0\n"]
        assert any("go to two-2: its devices are configured for it" in note for note in s.notes)
        assert [len(s._slices.close(node, fo.SliceFreed)) for node in s.held.nodes] == [1, 1]
        with pytest.raises(fo.SliceRefused, match="needs 2 fpga, node two-"):
            s.run(every, "x")
