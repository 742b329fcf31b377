"""Tasks that need GPUs: variables say which they have, and they share none."""

import subprocess
import sys
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of, waiting_tasks
from flowos.model import Ask, Pool
from tests.contract.test_providers import flow_of
from tests.integration.conftest import Flowos
from tests.integration.flow.device_tasks import CUDA, ONE, TWO, alone_on_it, on_both, without
from tests.waiting import comes

POOL = Pool(name="g", kind="fake", cores=4, gres="gpu:2")


def test_no_two_tasks_have_the_same_gpu_at_once(tmp_path: Path) -> None:
    with HeldSlice(provider_of(POOL), Ask(gpus=2), SliceOptions()) as s:
        rows = s.map(flow_of(alone_on_it, fo.str_), [str(tmp_path)] * 40)
        said = {str(row[0]) for row in rows}
    assert {word.split()[0] for word in said} <= {"0", "1"}
    assert len({word.split()[1] for word in said}) == len(said)  # a process has one GPU for ever


def test_a_process_that_used_a_gpu_is_followed_by_another_for_other_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA does not look again at what is visible once it has begun."""
    monkeypatch.setenv(CUDA, "0,1")
    chain = without(on_both(without("x")))
    tasks = fo.flow_output(on_both("a"), chain, alone_on_it(str(tmp_path)))
    with HeldSlice(provider_of(POOL), Ask(), SliceOptions(cores=1, fuse="none")) as s:
        both, last, one = (str(word).split() for word in s.run(tasks))
        assert (both[0], last[0], one[0]) == ("0,1", "0,1", "0")
        assert both[1] != one[1]


def test_a_task_that_waits_for_gpus_says_so(tmp_path: Path) -> None:
    words = ["sh", "-c", 'until test -e "$0"; do sleep 0.01; done', tmp_path / "go"]
    flow = fo.flow_output(*(fo.command(words, needs=TWO, name=f"c{i}")() for i in range(2)))

    def why() -> list[str]:
        return [task.why for task in waiting_tasks() if task.task in ("c0", "c1")]

    with HeldSlice(provider_of(POOL), Ask(), SliceOptions()) as s:
        run = s.submit(flow)
        name = "for 2 GPUs, 0 of 2 are free; tasks that run: c"
        assert comes(lambda: sorted(why()) in (["", f"{name}0"], ["", f"{name}1"]))
        (tmp_path / "go").touch()
        run.result()


def test_commands_have_the_variable_too() -> None:
    words = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $FLOWOS_DEVICES_GPU"]
    for needs, said in ((ONE, "0 0\n"), (TWO, "0,1 0,1\n")):
        flow = fo.flow_output(fo.command(words, stdout="said", needs=needs)())
        with HeldSlice(provider_of(POOL), Ask(), SliceOptions()) as s:
            assert s.run(flow) == [said]


def test_on_this_machine_tasks_share_what_cuda_would_see(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CUDA, "3,1")
    program = (
        "import os, flowos as fo\n"
        "import flowos.engine.local._processors as node\n"
        "node.gpu_count = lambda: 4\n"
        "@fo.task(needs=fo.Needs(gpus=1))\n"
        "def seen(x: fo.int64) -> fo.str_:\n"
        f"    return os.environ[{CUDA!r}]\n"
        "with fo.slice(seen(fo.flow_input('x', fo.int64))) as s:\n"
        "    print(sorted({row[0] for row in s.map(range(12))}, reverse=True))\n"
    )
    (tmp_path / "gpus.py").write_text(program)
    done = subprocess.run([sys.executable, tmp_path / "gpus.py"], capture_output=True, text=True)
    assert done.stdout in ("['3', '1']\n", "['3']\n"), done.stderr


def test_threads_cannot_tell_their_tasks_apart() -> None:
    with (
        HeldSlice(provider_of(POOL), Ask(), SliceOptions(workers="thread")) as s,
        pytest.raises(fo.SliceRefused, match="'alone_on_it' needs GPUs, and threads share the"),
    ):
        s.run(flow_of(alone_on_it, fo.str_), "x")


def test_a_slice_asks_for_the_gpus_and_the_memory_that_its_tasks_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flowos: Flowos
) -> None:
    (tmp_path / "flowos.toml").write_text('[pools.g]\nkind = "fake"\ngres = "gpu:1"\n')
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    x = fo.flow_input("x", fo.str_)
    with fo.slice(alone_on_it(x), pool="g") as s:
        assert str(s.run(str(tmp_path))[0]).split()[0] == "0"
    for flow, asked, words in (
        (on_both(x), {}, "pool g: 2 GPUs asked for, g-1 has 1$"),
        (without(x), {"gpus": 3}, "pool g: 3 GPUs asked for, g-1 has 1$"),
        (without(x), {"memory_bytes": 1 << 60}, r"pool g: \d+ bytes of memory asked for, g-1 has"),
        (without(x), {"gpus": -1}, "slice: gpus=-1; expected an int of 0 or more$"),
        (on_both(x), {"gpus": 0}, "task 'on_both' needs 2 GPUs, the node has 1$"),
    ):
        with pytest.raises(fo.SliceRefused, match=words):
            fo.slice(flow, pool="g", **asked)  # type: ignore[call-overload]
    with pytest.raises(fo.SliceRefused, match="gpus is asked of a pool: add pool='local'"):
        fo.slice(without(x), gpus=1)  # type: ignore[call-overload]
    flow = "import flowos as fo\nflow = fo.flow_output(fo.command(['true'])())\n"
    (tmp_path / "f.py").write_text(flow)
    run = ("run", str(tmp_path / "f.py"), "--pool", "g")
    assert flowos(*run, "--gpus", "2", code=1).stderr == (
        "flowos run: pool g: 2 GPUs asked for, g-1 has 1\n"
    )
    flowos(*run, "--gpus", "1")
