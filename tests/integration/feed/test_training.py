"""examples/resnet50: two ranks learn, and a training that was killed ends as if it had not been."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from flowos.model import Case, Exited, Outcome, Unmeasured
from flowos.probes.suites import SUITES
from flowos.probes.training import LOADERS, ResNetTraining
from tests.integration.conftest import MadeOnce
from tests.waiting import PATIENCE_SECONDS

# Not imported here: each of pytest's processes collects this file.
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="pip install torch")

EXAMPLE = Path(__file__).parents[3] / "examples/resnet50"
SMALL = "--device cpu --threads 1 --width 8 --blocks 1,1,1,1 --size 32 --base-lr 1 --warmup 1"
EPOCHS = 5


class Ranks:
    """Started by forked_ranks.py, which ends with its input, as they do with it."""

    def __init__(self) -> None:
        self.program = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forked_ranks.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.left: set[int] = set()

    def asked(self, **order: object) -> int:
        assert self.program.stdin
        assert self.program.stdout
        self.program.stdin.write(json.dumps(order) + "\n")
        self.program.stdin.flush()
        return int(self.program.stdout.readline())

    def start(self, words: list[str], size: int, output: Path) -> list[int]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ids = [
            self.asked(start=words, rank=rank, size=size, port=port, output=str(output))
            for rank in range(size)
        ]
        self.left |= set(ids)
        return ids

    def wait(self, ids: list[int]) -> list[int]:
        codes = [self.asked(wait=each) for each in ids]
        self.left -= set(ids)
        return codes

    def end(self) -> None:
        for each in self.left:
            os.kill(each, signal.SIGKILL)
        self.program.communicate()


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    started = Ranks()
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def images(made_once: MadeOnce) -> Path:
    """Of four classes, as small files."""

    def fill(folder: Path) -> None:
        counts = ("--train", "512", "--validation", "64", "--side", "40")
        line = [sys.executable, str(EXAMPLE / "made_images.py"), str(folder), *counts]
        subprocess.run(line, check=True)

    return made_once("images-to-learn", fill)


def words_of(images: Path, out: Path, *more: str) -> list[str]:
    given = ["--data", str(images), "--out", str(out), "--batch", "16", "--epochs", str(EPOCHS)]
    return [*given, *SMALL.split(), *more]


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def curve_of(out: Path) -> list[tuple[float, ...]]:
    names = ("epoch", "learning_rate", "train_loss", "train_top1", "validation_loss")
    return [tuple(row[name] for name in names) for row in rows_of(out)]


@pytest.fixture(scope="module")
def trained(ranks: Ranks, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training by two ranks that nothing disturbed."""
    out = tmp_path_factory.mktemp("trained") / "out"
    more = ("--trace", str(out.parent / "trace.json"))
    output = out.parent / "output"
    ids = ranks.start(words_of(images, out, *more), 2, output)
    assert ranks.wait(ids) == [0, 0], output.read_text()
    return out


def test_resnet50_has_its_number_of_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchvision's documentation has it."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from resnet import ResNet

    assert sum(each.numel() for each in ResNet().parameters()) == 25_557_032


@pytest.mark.parametrize(
    ("progress", "rate"),
    [(0, 0.1), (2.5, 1.65), (5, 3.2), (29.99, 3.2), (30, 0.32), (60, 0.032), (99, 0.0032)],
)
def test_the_rate_is_that_of_the_paper(
    progress: float, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 GPUs with 32 images each, from 0.1 to 0.1 * 256 * 32 / 256."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from train import learning_rate

    found = learning_rate(progress, 0.1, 0.1 * 256 * 32 / 256, 5, (30, 60, 80))
    assert found == pytest.approx(rate)


def test_two_ranks_learn_four_classes(trained: Path) -> None:
    rows = rows_of(trained)
    assert [row["epoch"] for row in rows] == list(range(EPOCHS))
    assert {row["train_images"] for row in rows} == {512}
    assert {row["validation_images"] for row in rows} == {64}
    assert max(row["validation_top1"] for row in rows) > 0.9
    assert all(
        re.fullmatch(
            r"consumer binds, \d+%|(?!consumer)[a-z ]+ binds, \d+%(; consumer \d+%)?", row["binds"]
        )
        for row in rows
    )


def test_stages_are_all_of_the_time(trained: Path) -> None:
    for row in rows_of(trained):
        assert set(row["stages"]) == set(row["first_iteration"]) == set(row["second_iteration"])
        assert sum(row["stages"].values()) == pytest.approx(row["seconds"], rel=0.1)
        assert row["stages"]["allreduce"] > 0
        for stage, seconds in row["stages"].items():
            apart = row["first_iteration"][stage] + row["second_iteration"][stage]
            assert apart <= seconds * (1 + 1e-9)


NAMED = (
    *(f.lacking for f in SUITES["reads"].figures if f.number == "12"),
    (EXAMPLE.parents[1] / "docs/suites.md").read_text(),
)


@pytest.mark.parametrize("text", NAMED, ids=["suite", "documentation"])
def test_what_names_the_command_of_the_trace_names_all_that_it_needs(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from options import read_options

    (words,) = re.findall(r"python examples/resnet50/train.py ([^`\n]*--trace [^`\n]*)", text)
    options = read_options(words.split())
    assert (options.trace_iterations, options.stages) == (5, True)
    assert options.trace is not None
    assert options.source.data == Path("DIR")


def test_the_trace_shows_iterations_of_both_ranks(trained: Path) -> None:
    events = json.loads((trained.parent / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 2 * 50 * 7
    assert {event["pid"] for event in spans} == {0, 1}
    assert min(event["ts"] for event in spans) == 0


def wait_for(found: Any, ids: list[int]) -> None:
    until = time.monotonic() + 4 * PATIENCE_SECONDS
    while not found():
        assert time.monotonic() < until
        assert all(Path(f"/proc/{each}").exists() for each in ids)
        time.sleep(0.01)


def test_a_killed_training_ends_as_if_it_had_not_been(
    ranks: Ranks, images: Path, trained: Path, tmp_path: Path
) -> None:
    """Killed once (SIGKILL), stopped within an epoch (SIGTERM): the same losses, bit for bit."""
    out, output = tmp_path / "out", tmp_path / "output"
    words, checkpoint = words_of(images, out, "--resume"), out / "checkpoint.pt"
    endless = [*words, "--epochs", "1000"]  # so that none ends before it is killed
    ids = ranks.start(endless, 2, output)  # with nothing yet to resume
    wait_for(checkpoint.exists, ids)
    for each in ids:
        os.kill(each, signal.SIGKILL)
    assert ranks.wait(ids) == [-signal.SIGKILL] * 2
    with (out / "log.jsonl").open("a") as log:
        log.write('{"epoch": 4')  # as if it had been killed while it wrote

    before = checkpoint.stat().st_mtime_ns
    ids = ranks.start(endless, 2, output)
    wait_for(lambda: checkpoint.stat().st_mtime_ns > before, ids)
    os.kill(ids[1], signal.SIGTERM)  # of which the other rank knows nothing
    assert ranks.wait(ids) == [128 + signal.SIGTERM] * 2, output.read_text()
    assert "--resume goes on there" in output.read_text()

    assert ranks.wait(ranks.start(words, 2, output)) == [0, 0], output.read_text()
    assert curve_of(out)[:EPOCHS] == curve_of(trained)


def test_a_checkpoint_is_gone_on_with_by_another_number_of_ranks(
    ranks: Ranks, images: Path, trained: Path, tmp_path: Path
) -> None:
    words = words_of(images, trained, "--resume", "--epochs", str(EPOCHS + 1))
    assert ranks.wait(ranks.start(words, 1, tmp_path / "output")) == [0]
    before, last = rows_of(trained)[-2:]
    assert (last["epoch"], last["ranks"], last["train_images"]) == (EPOCHS, 1, 512)
    assert last["train_top1"] > 0.7
    assert last["elapsed_seconds"] > before["elapsed_seconds"]


def test_torchs_loader_feeds_the_same_training(ranks: Ranks, images: Path, tmp_path: Path) -> None:
    more = ("--data-loader", "torch", "--workers", "0", "--epochs", "1", "--no-stages")
    words = words_of(images, tmp_path / "out", *more)
    assert ranks.wait(ranks.start(words, 1, tmp_path / "output")) == [0]
    (row,) = rows_of(tmp_path / "out")
    assert (row["train_images"], row["validation_images"]) == (512, 64)
    assert "stages" not in row


def test_the_probe_measures_each_loader(ranks: Ranks, tmp_path: Path) -> None:
    probe, output, own = ResNetTraining(), tmp_path / "output", tmp_path / "made/own"
    counts = ("--ranks", "2", "--epochs", "2", "--images", "64", "--side", "40")
    folders = ("--folder", str(tmp_path), "--own", str(own))
    words = [
        *folders,
        *counts,
        "--validation",
        "16",
        "--batch",
        "16",
        "--workers",
        "1",
        *SMALL.split(),
    ]
    assert ranks.wait([ranks.asked(measure=words, output=str(output))]) == [0]
    answer = Outcome(end=Exited(0), stdout=output.read_bytes())
    readings = probe.read(Case("training"), answer)
    assert not isinstance(readings, Unmeasured)
    found = {
        (r.metric, *(level for _, level in r.levels)): r.values
        for r in readings
        if r.metric != "stage"
    }
    assert {r.metric for r in readings} == {m for c in probe.info.charts for m in c.metrics}
    for loader in LOADERS:
        (training,), (both,) = found["training", loader], found["training_with_copy", loader]
        assert training > 0
        assert found["iterations", loader] == (4,), "64 images in batches of 16 by two ranks, twice"
        assert found["iterations_per_second", loader] == pytest.approx((4 / training,))
        copy = found.get(("file_copy", loader), (0.0,))[0]
        assert both == training + copy
        assert (copy > 0) == (loader == "local copy")
        (first,), (whole,) = (found["load", loader, part] for part in ("iteration 1", "epoch 1"))
        assert 0 < first < whole
        stages = [
            r.values[0]
            for r in readings
            if r.levels[:1] == (("loader", loader),) and r.metric == "stage"
        ]
        assert len(stages) == 2 * 7
        assert sum(stages) <= 1.05 * training
        for part, images in (("train_top1", 64), ("validation_top1", 16)):
            shares = [found[part, loader, epoch][0] for epoch in ("1", "2")]
            assert all(0 <= share <= 1 and (share * images).is_integer() for share in shares)
        (one,), (two,) = (found["elapsed", loader, epoch] for epoch in ("1", "2"))
        assert 0 < one < two
        assert training < two
    assert not list(own.iterdir()), "neither copy nor cache stays"
    assert {dict(r.notes)["own_storage"] for r in readings} == {str(own)}


def test_own_storage_that_cannot_be_made_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    program = EXAMPLE.parents[1] / "src/flowos/probes/programs/torch_training.py"
    folders = ("--folder", str(tmp_path), "--own", str(tmp_path / "file/own"))
    counts = ("--ranks", "1", "--epochs", "1", "--images", "16", "--side", "40")
    line = (sys.executable, str(program), *folders, *counts)
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    (said,) = done.stderr.splitlines()
    assert said.startswith("train.py: no folder on the node's own storage: ")
    assert said.endswith(f"Not a directory: '{tmp_path}/file/own'")


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--data", "nowhere"], "train.py: nowhere/train: no such folder"),
        (["--batch", "1000"], "train.py: too few images"),
        (["--blocks", "0,1"], "invalid numbers value: '0,1'"),
        (["--momentum", "-1"], "train.py: --momentum -1.0: expected at least 0"),
    ],
)
def test_what_cannot_be_is_one_line(
    more: list[str], line: str, ranks: Ranks, images: Path, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    words = words_of(images, tmp_path / "out", *more)
    assert ranks.wait(ranks.start(words, 1, output)) == [2]
    assert line in output.read_text()
    assert "Traceback" not in output.read_text()


def test_a_folder_with_a_training_is_not_written_to_by_another(
    ranks: Ranks, images: Path, trained: Path, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    assert ranks.wait(ranks.start(words_of(images, trained), 1, output)) == [2]
    assert "holds a training: give --resume" in output.read_text()
    other = words_of(images, trained, "--resume", "--width", "4")
    assert ranks.wait(ranks.start(other, 1, output)) == [2]
    assert "the checkpoint is of" in output.read_text()
