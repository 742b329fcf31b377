"""Tasks that could do with one thing or another: 1 GPU, else 2 cores."""

from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of, waiting_tasks
from flowos.model import Ask, Pool, Port
from tests.contract.test_providers import flow_of
from tests.integration.conftest import Flowos
from tests.integration.flow.device_tasks import EITHER, seen
from tests.waiting import comes

WORDS = ["sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES/$OMP_NUM_THREADS"']


def pool(gpus: int, cores: int = 4) -> Pool:
    return Pool(name="c", kind="fake", cores=cores, gres=f"gpu:{gpus}" if gpus else "")


def waits(go: Path, name: str) -> Port:
    words = ["sh", "-c", f'{WORDS[2]}; until test -e "$0"; do sleep 0.01; done', go]
    return fo.command(words, stdout="said", needs=EITHER, name=name)()  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_a_task_takes_the_first_that_is_free_and_knows_which_it_got(tmp_path: Path) -> None:
    go = tmp_path / "go"
    tasks = [waits(go, f"c{i}") for i in range(3)]

    def states() -> list[str]:
        return sorted(f"{task.state}{task.why}" for task in waiting_tasks())

    with HeldSlice(provider_of(pool(1)), Ask(), SliceOptions()) as s:
        run = s.submit(fo.flow_output(*tasks))
        short = "for 1 GPU, 0 of 1 are free; tasks that run: "
        assert comes(lambda: [state[:4] for state in states()] == ["runs", "runs", "wait"])
        assert short in states()[2]
        assert "; or for 2 cores, 1 of 4 are free" in states()[2]
        go.touch()
        said = [str(each).strip() for each in run.result()]
        assert sorted(said[:2]) == ["/2", "0/"]
        assert said[2] in ("/2", "0/")


def test_all_of_a_node_is_used_and_given_back() -> None:
    each = flow_of(seen, fo.int64)
    held = HeldSlice(provider_of(pool(1)), Ask(), SliceOptions())
    with held as s:
        (node,) = s.held.nodes
        ledger = node.ledger
        assert {row[0] for row in s.map(each, range(60))} == {"0", ""}
        assert comes(lambda: (len(ledger.idle), len(ledger._devices["gpu"])) == (4, 1))
        assert ledger.line == []
        plain = fo.flow_output(fo.command(WORDS, stdout="said", needs=fo.Needs(cores=4))())
        assert s.run(plain) == ["/4\n"]


def test_what_its_node_never_has_is_passed_over_and_all_lacking_is_refused() -> None:
    with HeldSlice(provider_of(pool(0)), Ask(), SliceOptions()) as s:
        assert s.run(fo.flow_output(fo.command(WORDS, stdout="said", needs=EITHER)())) == ["/2\n"]
    with HeldSlice(provider_of(pool(1, 1)), Ask(), SliceOptions()) as s:
        flow = fo.flow_output(fo.command(WORDS, stdout="said", needs=EITHER)())
        assert s.run(flow) == ["0/\n"]
    with HeldSlice(provider_of(pool(0, 1)), Ask(), SliceOptions()) as s:
        words = "task 'seen' needs 1 GPU, the node has 0, or 2 cores, the slice has 1$"
        with pytest.raises(fo.SliceRefused, match=words):
            s.run(flow_of(seen, fo.int64), 1)


def test_a_slice_asks_for_the_first_that_the_pool_can_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flowos: Flowos
) -> None:
    (tmp_path / "flowos.toml").write_text(
        '[pools.gpus]\nkind = "fake"\ncores = 1\ngres = "gpu:1"\n'
        '[pools.none]\nkind = "fake"\ncores = 2\n[pools.small]\nkind = "fake"\ncores = 1\n'
    )
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    flow = fo.flow_output(fo.command(WORDS, stdout="said", needs=EITHER)())
    for name, said in (("gpus", "0/\n"), ("none", "/2\n")):
        with fo.slice(flow, pool=name) as s:
            assert s.run() == [said]
    words = r"needs 1 GPU, .* has 0, or 2 cores, the slice has 1$"
    with pytest.raises(fo.SliceRefused, match=words), fo.slice(flow, pool="small") as s:
        s.run()
    text = "import flowos as fo\nflow = fo.flow_output(fo.command(['true'], name='t', needs=(\n"
    text += "    fo.Needs(gpus=1), fo.Needs(cores=8, memory_bytes=9)))())\n"
    (tmp_path / "f.py").write_text(text)
    shown = flowos("run", str(tmp_path / "f.py"), "--pool", "none", "--dry-run").stdout
    assert "# t needs 1 GPU, else 8 cores and 9 bytes\n" in shown
