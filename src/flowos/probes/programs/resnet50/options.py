"""What a person gives to `train.py`, checked."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from batches import LOADERS, ImageSource
from ranks import TrainingError

EXAMPLE = """examples:
  torchrun --nproc-per-node 4 train.py --data /lustre/imagenet --cache /local/nvme/cache \\
      --out run1 --amp --channels-last           (ImageNet on four GPUs)
  python made_images.py /tmp/made && torchrun --nproc-per-node 2 train.py --data /tmp/made \\
      --out /tmp/run --device cpu --threads 1 --width 8 --blocks 1,1,1,1 --size 32 \\
      --batch 16 --epochs 8 --warmup 1 --base-lr 1       (seconds, on two cores)

exit codes: 0 trained; 1 another rank has ended; 2 something given is wrong; 143, 130 stopped by
SIGTERM, SIGINT after a checkpoint: --resume goes on there.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See the help of each in `read_options`."""

    source: ImageSource
    out: Path
    resume: bool
    epochs: int
    base_lr: float
    warmup: float
    steps: tuple[int, ...]
    momentum: float
    weight_decay: float
    width: int
    blocks: tuple[int, ...]
    device: str
    threads: int
    amp: bool
    channels_last: bool
    stages: bool
    trace: Path | None
    trace_iterations: int


def numbers(text: str) -> tuple[int, ...]:
    found = tuple(int(word) for word in text.split(",") if word)
    if any(number < 1 for number in found):
        raise ValueError(text)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Trains ResNet-50 by data-parallel SGD, as Goyal et al. 2017 do.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="holds train/CLASS/*.jpg and val/CLASS/*.jpg")
    add("--cache", type=Path, metavar="DIR", help="of the feed, on storage of this node")
    add("--out", type=Path, metavar="DIR", required=True, help="for the checkpoint and the log")
    add("--resume", action="store_true", help="go on from the checkpoint in --out, if there is one")
    add("--data-loader", choices=LOADERS, default="feed", help="default: feed")
    add("--workers", type=int, default=2, help="of --data-loader torch, for each rank; default: 2")
    add("--samples", type=int, default=1024, help="of --data-loader synthetic; default: 1024")
    add("--batch", type=int, default=32, help="images of a rank in a step; default: 32")
    add("--size", type=int, default=224, help="pixels a side; default: 224")
    add("--seed", type=int, default=0, help="of order, augmentation and weights; default: 0")
    add("--epochs", type=int, default=100, help="default: 100")
    add("--base-lr", type=float, default=0.1, help="for 256 images a step; default: 0.1")
    add("--warmup", type=float, default=5, metavar="EPOCHS", help="default: 5")
    add("--steps", type=numbers, default=(30, 60, 80), metavar="EPOCH,...",
        help="after which the rate is a tenth; default: 30,60,80")  # fmt: skip
    add("--momentum", type=float, default=0.9, help="default: 0.9")
    add("--weight-decay", type=float, default=1e-4, help="default: 1e-4")
    add("--width", type=int, default=64, help="channels of the stem; default: 64")
    add("--blocks", type=numbers, default=(3, 4, 6, 3), help="default: 3,4,6,3, as of ResNet-50")
    add("--device", choices=("auto", "cuda", "cpu"), default="auto", help="default: auto")
    add("--threads", type=int, default=0, help="of a rank on CPUs; default: what torch takes")
    add("--amp", action="store_true", help="compute in bfloat16 where that is safe (autocast)")
    add("--channels-last", action="store_true", help="NHWC in memory: for tensor cores")
    add("--no-stages", action="store_true", help="do not time the stages of an iteration")
    add("--trace", type=Path, metavar="FILE", help="write a timeline, for ui.perfetto.dev")
    add("--trace-iterations", type=int, default=50, help="of the timeline; default: 50")
    return parser


def read_options(words: list[str] | None = None) -> Options:
    """Raises TrainingError, or SystemExit of argparse, for what cannot be."""
    given = vars(_parser().parse_args(words))
    for name in ("batch", "size", "epochs", "width", "samples", "trace_iterations"):
        _check_minimum(name, given[name], 1)
    for name in ("workers", "threads", "seed", "base_lr", "warmup", "momentum", "weight_decay"):
        _check_minimum(name, given[name], 0)
    if not given["blocks"]:
        raise TrainingError("--blocks is empty; as in 3,4,6,3")
    if given["no_stages"] and given["trace"]:
        raise TrainingError("--trace shows the stages: leave --no-stages out")
    names = ("data", "cache", "batch", "size", "seed", "workers", "samples")
    source = ImageSource(
        loader=given.pop("data_loader"), **{name: given.pop(name) for name in names}
    )
    return Options(source=source, stages=not given.pop("no_stages"), **given)


def _check_minimum(name: str, value: float, minimum: float) -> None:
    if not minimum <= value < float("inf"):
        raise TrainingError(f"--{name.replace('_', '-')} {value}: expected at least {minimum}")
