"""Training of examples/resnet50 by several ranks: its time by loader, and what timing stages costs.

`python benchmarks/training.py [--json] [--only loaders,stages] [--rounds 3] [--epochs 3]
[--ranks 2] [--images 1024] [--round-trip-ms 5] [--mbit 100] [--workers 2,8] [--device cpu]
[--model "--width 8 --blocks 1,1,1,1 --size 64"]`; needs PyTorch, Pillow, g++ and fuse3.

loaders: a remote folder (benchmarks/feed/slowfs.cpp) is read by DataLoader, by DataLoader from a
copy on this disk that is made first with eight threads, and by fo.Feed with an empty cache, in
turns. `seconds` are those of all epochs, without validation; `with_copy` adds the copy, as figure 8
of the paper does. Medians of rounds. Pages of the copy are in memory, those of the remote folder
never. `load` is what the ranks waited for on average, in each epoch and in the first and the second
iteration of the first.

stages: steps of the same ranks with the times of their stages taken and not taken, in blocks A B B
A. `ratio` is the centre of the rounds' ratios, with Wilcoxon's interval at 95 % (flowos.plan);
`marks_seconds` is what the marks of an iteration cost by themselves, in processor time.
Exit 1 if the interval lies above 1.01, or if fo.Feed takes longer than DataLoader with the copy.
"""

import argparse
import json
import math
import signal
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "src/flowos/probes/programs"
sys.path[:0] = [str(HERE / "feed"), str(PROGRAMS), str(PROGRAMS / "resnet50")]

from _numbers import not_negative, positive, whole_number, whole_numbers  # noqa: E402
from made_images import write_images  # noqa: E402
from pictures import DataSet  # noqa: E402
from places import NotHere, default_folder  # noqa: E402
from stores import far_files  # noqa: E402
from torch_training import run_ranks, trained  # noqa: E402

from flowos.plan._intervals import interval  # noqa: E402

MAX_RATIO = 1.01
SIDE = 256
Row = dict[str, Any]


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ranks and mounts end too
    found: dict[str, Any] = {"ranks": options.ranks, "model": options.model}
    if "loaders" in options.only:
        try:
            found["loaders"] = loaders(options)
        except NotHere as why:
            sys.exit(f"training: {why}")
    if "stages" in options.only:
        found["stages"] = stages(options)
    found["holds"] = holds(found)
    print(json.dumps(found, indent=1))
    return 0 if found["holds"] else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--json", action="store_true", help="the only form there is")
    add("--only", type=lambda text: text.split(","), default=["loaders", "stages"])
    add("--rounds", type=whole_number(), default=3, help="of loaders; ten times as many of stages")
    add("--epochs", type=whole_number(), default=3)
    add("--ranks", type=whole_number(), default=2)
    add("--images", type=whole_number(), default=1024)
    add("--round-trip-ms", type=not_negative, default=5.0)
    add("--mbit", type=positive, default=100.0)
    add("--workers", type=whole_numbers(0), default="2,8")
    add("--device", default="cpu")
    add("--threads", type=whole_number(), default="1", help="of a rank on CPUs")
    add("--steps", type=whole_number(), default=10, help="of a block, for stages")
    add("--model", default="--width 8 --blocks 1,1,1,1 --size 64")
    return parser.parse_args()


def model_words(options: argparse.Namespace) -> list[str]:
    return ["--device", options.device, "--threads", str(options.threads), *options.model.split()]


# -- loaders


def loaders(options: argparse.Namespace) -> list[Row]:
    default_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="training-", dir=default_folder()) as folder:
        data, at = Path(folder) / "data", Path(folder)
        validation = max(options.images // 16, options.ranks)
        write_images(data, classes=4, train=options.images, validation=validation, side=SIDE)
        files = [path for path in data.rglob("*.jpg")]
        whole = DataSet(
            folder=str(data),
            count=len(files),
            bytes=sum(f.stat().st_size for f in files),
            checksum=0,
        )
        link = (options.round_trip_ms, options.mbit)
        names = [f"DataLoader, {count} workers" for count in options.workers]
        names = [*names, *(f"{name}, copied" for name in names), "fo.Feed"]
        rounds: dict[str, list[Row]] = {name: [] for name in names}
        with far_files(whole, default_folder(), *link) as source:
            for number in range(options.rounds):
                for name in names if number % 2 == 0 else reversed(names):
                    print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
                    rounds[name].append(one_training(name, Path(source.root), at, options))
    return [summary(name, rows, whole) for name, rows in rounds.items()]


def one_training(name: str, remote: Path, folder: Path, options: argparse.Namespace) -> Row:
    loader, workers = "feed", "0"
    if name != "fo.Feed":
        loader = "local copy" if name.endswith("copied") else "shared"
        workers = name.split(", ")[1].split()[0]
    recipe = ["--epochs", str(options.epochs), "--base-lr", "0.5", "--warmup", "1"]
    words = ["--workers", workers, *recipe, *model_words(options)]
    with tempfile.TemporaryDirectory(prefix="own-", dir=folder) as own:
        found = trained(loader, remote, Path(own), options.ranks, words)
    rows = found["epochs"]
    return {
        "epochs": [row["seconds"] for row in rows],
        "copy": found["copy"],
        "load": [row["stages"]["load"] for row in rows],
        "first_iteration_load": rows[0]["first_iteration"]["load"],
        "second_iteration_load": rows[0]["second_iteration"]["load"],
        "images": sum(row["train_images"] for row in rows),
        "top1": rows[-1]["train_top1"],
    }


def summary(name: str, rows: list[Row], data: DataSet) -> Row:
    seconds = [sum(row["epochs"]) for row in rows]
    with_copy = [sum(row["epochs"]) + row["copy"] for row in rows]
    columns = zip(*(row["epochs"] for row in rows), strict=True)
    loads = zip(*(row["load"] for row in rows), strict=True)
    single = ("copy", "first_iteration_load", "second_iteration_load", "top1")
    return {
        "loader": name,
        "seconds": statistics.median(seconds),
        "with_copy": statistics.median(with_copy),
        "rounds": with_copy,
        "epochs": [statistics.median(column) for column in columns],
        "load": [statistics.median(column) for column in loads],
        **{key: statistics.median(row[key] for row in rows) for key in single},
        "images": rows[0]["images"],
        "bytes": data.bytes,
    }


# -- stages


def stages(options: argparse.Namespace) -> Row:
    with tempfile.NamedTemporaryFile("r") as result:
        if run_ranks(options.ranks, partial(stages_of_rank, options, Path(result.name))):
            sys.exit("training: a rank failed")
        return dict(json.load(result))


def stages_of_rank(options: argparse.Namespace, result: Path) -> int:
    """In a rank: blocks of steps with stages timed and not timed; rank 0 writes the result."""
    import torch
    from batches import Synthetic
    from options import read_options
    from ranks import joined
    from stages import LAST
    from train import Trainer

    words = ["--out", "none", "--data-loader", "synthetic", "--samples", str(32 * options.ranks)]
    given = read_options([*words, *model_words(options)])
    if given.threads:
        torch.set_num_threads(given.threads)
    with joined(given.device) as ranks:
        trainer = Trainer(given, ranks, len(Synthetic.CLASSES))
        batch = next(Synthetic(given.source, ranks, training=True).epoch(0))
        trainer.set_rate(0.0)

        def block(on: bool) -> float:
            trainer.time_stages(on)
            began = time.perf_counter()
            trainer.times.restart([])
            for _ in range(options.steps):
                trainer.times.mark("load")
                trainer.step(*batch)
                trainer.times.mark(LAST)
            trainer.totals.values()
            trainer.times.rows()
            return time.perf_counter() - began

        block(True)
        blocks = [
            (on, block(on)) for _ in range(10 * options.rounds) for on in (True, False, False, True)
        ]
    if ranks.rank == 0:
        alone = marks_alone(ranks.device)
        found = {**stages_result(blocks, options.steps), "marks_seconds": alone}
        result.write_text(json.dumps(found))
    return 0


def marks_alone(device: Any) -> float:
    """Processor seconds of the marks of an iteration, without anything between them."""
    from stages import STAGES, StageTimes, clock_of

    times, count = StageTimes(clock_of(device)), 2000
    times.restart([])
    began = time.process_time()
    for _ in range(count):
        for stage in STAGES:
            times.mark(stage)
    times.rows()
    return (time.process_time() - began) / count


def stages_result(blocks: list[tuple[bool, float]], steps: int) -> Row:
    rounds = [blocks[at : at + 4] for at in range(0, len(blocks), 4)]
    logs = [
        math.log(sum(s for on, s in four if on) / sum(s for on, s in four if not on))
        for four in rounds
    ]
    found = interval(logs, 0.95)
    return {
        "ratio": math.exp(found.centre),
        "interval": [math.exp(found.low), math.exp(found.high)],
        "rounds": len(rounds),
        "seconds_per_step": statistics.median(s for on, s in blocks if not on) / steps,
    }


def holds(found: dict[str, Any]) -> bool:
    timed = found.get("stages")
    if timed and timed["interval"][0] > MAX_RATIO:
        return False
    rows = {row["loader"]: row["with_copy"] for row in found.get("loaders", [])}
    copied = [seconds for name, seconds in rows.items() if name.endswith("copied")]
    return not copied or rows["fo.Feed"] <= min(copied)


if __name__ == "__main__":
    sys.exit(main())
