"""What nodes of every resource manager promise of Python tasks; collected by those of each."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import flowos as fo
from flowos.engine import (
    Held,
    HeldSlice,
    ProgressWatch,
    Provider,
    SliceOptions,
    io_pressure_between,
    state_between,
)
from flowos.engine.local._state_disk import traffic
from flowos.model import Ask, Launch, Progress
from flowos.plan import assess_trust
from tests.contract.tasks import awaits
from tests.contract.test_providers import flow_of, on, touched_once
from tests.waiting import comes

from .array_tasks import total_of, twice
from .tasks import dies, passes

FLOWOS = str(Path(sys.executable).with_name("flowos"))


DIES = flow_of(dies, fo.int64)


def test_a_worker_that_dies_is_told_with_its_task_and_its_last_words(
    provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    with on(provider) as s:
        results = s.map(DIES, range(6), on_error="return")
        ends = [r.error is None for r in results]
        assert ends == [True, True, True, False, True, True]
        with pytest.raises(fo.WorkerLost, match=r"task 'dies'.* killed by signal 9"):
            s.run(DIES, 3)
        assert s.run(DIES, 4) == [4]
    assert "last words" in capsys.readouterr().out


def test_arrays_cross_between_this_machine_and_the_nodes(provider: Provider) -> None:
    given = fo.flow_input("a", fo.array(fo.float64))
    flow = fo.flow_output(total_of(twice(twice(given))))
    with on(provider) as s:
        for size in (10, 10_000, 1_000_000):
            assert s.run(flow, np.ones(size)) == [4.0 * size]


class Shown:
    """What is said of the progress of runs."""

    delay_seconds = 0.0

    def __init__(self) -> None:
        self.details: list[str] = []

    def begin(self) -> None: ...

    def show(self, progress: Progress) -> None:
        self.details.append(progress.detail)

    def end(self, progress: Progress | None) -> None: ...


def test_progress_names_the_task_that_runs_or_none(provider: Provider, tmp_path: Path) -> None:
    """Of several at once it is not known which one, once the worker there has begun."""
    path = fo.flow_input("path", fo.str_)
    for flow, said in (
        (awaits(path), "0/1 tasks  awaits for 2 s"),
        (awaits(passes(path)), "0/2 tasks"),
    ):
        shown = Shown()
        file = Path(provider.pool.shared or tmp_path, f"after-{said[2]}")
        watch = ProgressWatch(shown)
        options = SliceOptions(workers="process", cores=1, progress=watch)
        with HeldSlice(provider, Ask(), options) as s:
            waiting = touched_once(file, lambda: said in shown.details[-1:])  # noqa: B023 - joined
            assert s.run(fo.flow_output(flow), str(file)) == [str(file)], shown.details
            waiting.join()
        file.unlink()
        assert "awaits" not in " ".join(shown.details) or "awaits" in said


def test_what_others_do_on_a_node_is_seen(held: Held) -> None:
    (node, *_) = held.nodes
    node.run(Launch(argv=("true",)))
    before = node.look()
    with subprocess.Popen(("sh", "-c", "while :; do :; done")) as other:
        node.run(Launch(argv=("sleep", "1")))
        other.kill()
    state = state_between(before, node.look())
    assert state.steal_share is not None
    assert state.others_cpus is not None
    assert state.others_cpus > 0.3
    assert (state.memory_pressure is not None) == Path("/proc/pressure/memory").exists()


def written(file: Path, size: int) -> Path:
    """To its disk."""
    with file.open("wb") as out:
        out.write(os.urandom(size))
        os.fsync(out.fileno())
    return file


def test_another_one_at_the_disk_of_a_node_is_seen(held: Held, tmp_path: Path) -> None:
    if traffic(tmp_path) is None:
        pytest.skip("the folder for temporary files is on no disk that the kernel counts")
    (node, *_) = held.nodes
    file = written(tmp_path / "data", 32 << 20)
    read = f"dd if={file} of=/dev/null bs=1M iflag=direct"
    node.run(Launch(argv=("true",)))
    before = node.look(tmp_path)
    assert node.run(Launch(argv=("sh", "-c", read))).ok
    alone = node.look(tmp_path)
    assert before.disk is not None
    assert alone.disk is not None
    assert alone.disk.our_bytes - before.disk.our_bytes >= 32 << 20
    assert alone.disk.all_bytes - before.disk.all_bytes >= 32 << 20
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    words = f"touch {begun}; while ! [ -e {ended} ]; do sleep 0.1; done"
    waits = threading.Thread(target=node.run, args=(Launch(argv=("sh", "-c", words)),))
    waits.start()
    assert comes(begun.exists)
    subprocess.run(("sh", "-c", read), check=True, capture_output=True)
    ended.touch()
    waits.join()
    after = node.look(tmp_path)
    state = state_between(alone, after)
    assert state.others_disk is not None
    assert state.others_disk[0] * (after.at - alone.at) >= 16 << 20
    assert any("on the disk" in mark for mark in assess_trust([state]).marks)
    pressure = io_pressure_between(alone, after)
    assert (pressure is not None) == Path("/proc/pressure/io").exists()


FLOW = """
import numpy as np
import numpy.typing as npt
import flowos as fo

@fo.task
def make(n: int) -> npt.NDArray[np.float64]:
    return np.arange(n, dtype=float)

@fo.task
def text(a: npt.NDArray[np.float64]) -> str:
    return " ".join(map(str, a))

counted = fo.command(
    ["sh", "-c", "echo $0 | wc -w", fo.In("words")],
    name="count", inputs={"words": fo.str_}, stdout="lines"
)
written = fo.command(
    ["sh", "-c", "echo $0 > $1", fo.In("words"), fo.Out("file")],
    name="file", inputs={"words": fo.str_}
)
words = text(make(fo.flow_input("n", fo.int64)))
flow = fo.flow_output(counted(words), written(words))
"""


def a_flow_file_gives_the_same_on(pool: str) -> None:
    """In the current folder; `pool`: the keys of one in flowos.toml."""
    Path("flow.py").write_text(FLOW)
    Path("flowos.toml").write_text(f"[pools.c]\n{pool}")
    found = []
    for place in ((), ("--pool", "c", "--nodes", "2")):
        words = (FLOWOS, "run", "flow.py", "n=5", "--out", "file=words.txt", *place, "--json")
        done = subprocess.run(words, capture_output=True, text=True)
        said = [s for s in done.stderr.splitlines() if not s.startswith("flowos run: waiting: ")]
        assert (done.returncode, said) == (0, [])
        found.append((done.stdout, Path("words.txt").read_text()))
    assert found[0] == found[1]
    assert '"count": "5' in found[0][0]
