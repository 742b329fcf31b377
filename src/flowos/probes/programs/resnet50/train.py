"""ResNet-50 trained by several processes (torch DistributedDataParallel), fed by `fo.Feed`.

`python train.py --help` says what there is. The recipe is that of Goyal et al., Accurate, Large
Minibatch SGD: Training ImageNet in 1 Hour (2017): a learning rate in proportion to the images of a
step, reached by a linear warm-up, and divided by 10 after epochs 30, 60 and 80.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from inspect import signature
from typing import Any

import torch
import torch.distributed as dist
from batches import open_batches
from checkpoint import TrainingFolder
from options import Options, read_options
from ranks import StopRequest, TrainingError, TrainingRanks, joined
from resnet import ResNet
from stages import LAST, STAGES, StageTimes, clock_of, write_trace
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
"""Of ImageNet's red, green and blue, from 0 to 255."""
_PARAMETERS = signature(DistributedDataParallel.__init__).parameters
_SYNC_BUFFERS = next(n for n in ("forward_sync_buffers", "broadcast_buffers") if n in _PARAMETERS)
"""As newer and as older PyTorch calls it."""


def learning_rate(
    progress: float, base: float, peak: float, warmup: float, steps: Sequence[int]
) -> float:
    """progress: epochs since the beginning, with fractions. From `base` to `peak`, then down."""
    if progress < warmup:
        start = min(base, peak)
        return start + (peak - start) * progress / warmup
    return float(peak * 0.1 ** sum(progress >= step for step in steps))


class Totals:
    """Loss and right answers so far; on the device, so that no step waits for them."""

    def __init__(self, device: Any, loss: float = 0.0, correct: int = 0, count: int = 0) -> None:
        self._loss = torch.tensor(loss, dtype=torch.float64, device=device)
        self._correct = torch.tensor(correct, device=device)
        self.count = count

    def add(self, scores: Any, labels: Any, loss: Any) -> None:
        self._loss += loss.detach() * len(labels)
        self._correct += (scores.detach().argmax(1) == labels).sum()
        self.count += len(labels)

    def values(self) -> list[float]:
        """Waits for the device."""
        return [self._loss.item(), self._correct.item(), self.count]


class Trainer:
    """A model, its optimizer, and what a step does."""

    def __init__(self, options: Options, ranks: TrainingRanks, classes: int) -> None:
        torch.manual_seed(options.source.seed)
        self._options, self._ranks = options, ranks
        self._format = torch.channels_last if options.channels_last else torch.contiguous_format
        self.module = ResNet(classes, blocks=options.blocks, width=options.width)
        self.module.to(ranks.device, memory_format=self._format)
        self.model = self.module
        if ranks.size > 1:
            self.model = DistributedDataParallel(
                self.module,
                device_ids=[ranks.device] if ranks.device.type == "cuda" else None,
                gradient_as_bucket_view=True,
                **{_SYNC_BUFFERS: False},
            )
        self.optimizer = torch.optim.SGD(
            self.module.parameters(),
            lr=0.0,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
        )
        self._mean, self._std = (
            torch.tensor(values, device=ranks.device).view(1, 3, 1, 1) for values in (MEAN, STD)
        )
        self.totals = Totals(ranks.device)
        self.time_stages(options.stages)

    def time_stages(self, on: bool) -> None:
        options, clock = self._options, clock_of(self._ranks.device) if on else None
        self.times = StageTimes(clock, options.trace_iterations if options.trace else 0)
        self.times_hook = getattr(self, "times_hook", None)
        if self.times_hook is not None:
            self.times_hook.remove()
            self.times_hook = None
        if on and self._ranks.size > 1:
            # The first weights get their gradient last; what backward does after that is to wait
            # for the sums of all ranks.
            stem = next(self.module.parameters())
            mark = self.times.mark
            self.times_hook = stem.register_post_accumulate_grad_hook(lambda _: mark("backward"))

    def set_rate(self, progress: float) -> float:
        options = self._options
        peak = options.base_lr * self._ranks.size * options.source.batch / 256
        rate = learning_rate(progress, options.base_lr, peak, options.warmup, options.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def on_device(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """uint8 (n, height, width, 3) to normalised (n, 3, height, width)."""
        device = self._ranks.device
        images = images.to(device, non_blocking=True).permute(0, 3, 1, 2)
        images = images.float().sub_(self._mean).div_(self._std)
        return images.contiguous(memory_format=self._format), labels.to(device, non_blocking=True)

    def scores(self, model: Any, images: Any, labels: Any) -> tuple[Any, Any]:
        kind = self._ranks.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=self._options.amp):
            scores = model(images)
            return scores, cross_entropy(scores, labels)

    def step(self, images: Any, labels: Any) -> None:
        mark = self.times.mark
        images, labels = self.on_device(images, labels)
        mark("copy")
        scores, loss = self.scores(self.model, images, labels)
        mark("forward")
        loss.backward()
        mark("allreduce" if self._ranks.size > 1 else "backward")
        self.optimizer.step()
        self.optimizer.zero_grad()
        mark("optimizer")
        self.totals.add(scores, labels, loss)

    def validated(self, batches: Any) -> list[float]:
        """Loss, right answers and images of this rank."""
        self.module.eval()
        totals = Totals(self._ranks.device)
        with torch.inference_mode():
            for batch in batches:
                images, labels = self.on_device(*batch)
                scores, loss = self.scores(self.module, images, labels)
                totals.add(scores, labels, loss)
        self.module.train()
        return totals.values()

    def statistics(self) -> list[Any]:
        """Running means and variances, which each rank has of its own images."""
        return [buffer for buffer in self.module.buffers() if buffer.is_floating_point()]

    def average_statistics(self) -> None:
        """So that all ranks validate one model."""
        if self._ranks.size > 1:
            own = self.statistics()
            flat = torch.cat([each.flatten() for each in own])
            dist.all_reduce(flat)
            flat /= self._ranks.size
            self.set_statistics(flat)

    def set_statistics(self, flat: Any) -> None:
        own = self.statistics()
        for each, part in zip(own, flat.split([each.numel() for each in own]), strict=True):
            each.copy_(part.view_as(each))


class Training:
    """Epochs of it, their log and their checkpoints."""

    def __init__(self, options: Options, ranks: TrainingRanks) -> None:
        self._began = time.perf_counter()
        self._options, self._ranks = options, ranks
        self._folder = TrainingFolder(options.out, writes=ranks.rank == 0, resume=options.resume)
        self._stop = StopRequest(ranks)
        self._batches, self._validation = open_batches(options.source, ranks)
        if len(self._batches) == 0:
            raise TrainingError("too few images to fill a batch of every rank: make --batch less")
        self._trainer = Trainer(options, ranks, len(self._batches.classes))
        self._epoch, self._seconds, self._elapsed, self._rate = 0, 0.0, 0.0, 0.0
        self._rows: list[dict[str, float]] = []
        self._binds: tuple[bool, float, str] | None = None
        self._resume()

    def run(self) -> int:
        """The exit code."""
        with closing(self._batches), closing(self._validation):
            while self._epoch < self._options.epochs:
                if signal := self._train():
                    if self._save():
                        self._say(f"stopped in epoch {self._epoch}; --resume goes on there")
                    return 128 + signal
                self._finish_epoch()
                self._save()
        if self._options.trace:
            spans = self._ranks.gathered(self._trainer.times.spans)
            if self._ranks.rank == 0:
                write_trace(self._options.trace, spans)
        return 0

    def _train(self) -> int:
        """What is left of the epoch. The signal that stopped it, or 0."""
        trainer, epoch, signal = self._trainer, self._epoch, 0
        trainer.times.restart(self._rows)
        began, before = time.perf_counter(), self._batches.stats()
        batches, steps = self._batches.epoch(epoch), len(self._batches)
        at = steps - len(batches)
        for batch in batches:
            trainer.times.mark("load")
            self._stop.ask()
            self._rate = trainer.set_rate(epoch + at / steps)
            trainer.step(*batch)
            at += 1
            signal = self._stop.agreed()
            trainer.times.mark(LAST)
            if signal:
                break
        trainer.totals.values()  # waits for the device
        self._seconds += time.perf_counter() - began
        if before is not None and (found := self._batches.stats().binding(before)):
            self._binds = (found.name != "consumer", found.share, str(found))
        self._rows = trainer.times.rows()
        return signal

    def _finish_epoch(self) -> None:
        trainer, began = self._trainer, time.perf_counter()
        trainer.average_statistics()
        validated = trainer.validated(self._validation.epoch(self._epoch))
        found = {
            "train": trainer.totals.values(),
            "validation": validated,
            "seconds": self._seconds,
            "validation_seconds": time.perf_counter() - began,
            "rows": self._rows,
            "binds": self._binds,
        }
        of_ranks = self._ranks.gathered(found)
        if self._ranks.rank == 0:
            self._log(of_ranks)
        self._epoch += 1
        self._seconds, self._rows, self._rate = 0.0, [], 0.0
        trainer.totals = Totals(self._ranks.device)

    def _log(self, of_ranks: list[dict[str, Any]]) -> None:
        source = self._options.source
        row: dict[str, Any] = {"epoch": self._epoch, "steps": len(self._batches)}
        row |= {"ranks": self._ranks.size, "batch": source.batch, "data_loader": source.loader}
        row["learning_rate"] = self._rate
        for part in ("train", "validation"):
            loss, correct, count = (
                sum(column) for column in zip(*(r[part] for r in of_ranks), strict=True)
            )
            row |= {f"{part}_loss": loss / max(1, count), f"{part}_top1": correct / max(1, count)}
            row[f"{part}_images"] = count
        row["seconds"] = max(r["seconds"] for r in of_ranks)
        row["validation_seconds"] = max(r["validation_seconds"] for r in of_ranks)
        row["elapsed_seconds"] = self._elapsed + time.perf_counter() - self._began
        row["images_per_second"] = row["train_images"] / row["seconds"]
        names = ("stages", "first_iteration", "second_iteration")
        for name, *rows in zip(names, *(r["rows"] for r in of_ranks), strict=False):
            row[name] = {s: sum(r[s] for r in rows) / len(rows) for s in STAGES}
        # Where one rank waits for its feed, all the others wait for that rank.
        binds = max(filter(None, (r["binds"] for r in of_ranks)), default=None)
        row["binds"] = binds[-1] if binds else None
        if why := self._folder.append_log(row):
            self._say(f"the log cannot be written, training goes on: {why}")
        self._say(
            f"epoch {row['epoch']}: loss {row['train_loss']:.4f}, "
            f"top-1 {row['train_top1']:.2%}; validation {row['validation_loss']:.4f}, "
            f"{row['validation_top1']:.2%}; {row['seconds']:.1f} s, "
            f"{row['images_per_second']:.0f} images/s" + (f"; {row['binds']}" if binds else "")
        )

    # -- checkpoints

    def _shape(self) -> dict[str, Any]:
        options = self._options
        shape = {"width": options.width, "blocks": list(options.blocks)}
        return {**shape, "classes": len(self._batches.classes)}

    def _save(self) -> bool:
        trainer = self._trainer
        own = {
            "statistics": torch.cat([each.flatten() for each in trainer.statistics()]).cpu(),
            "totals": trainer.totals.values(),
            "rows": self._rows,
        }
        of_ranks = self._ranks.gathered(own)
        if self._ranks.rank > 0:
            return True
        state = {
            "shape": self._shape(),
            "model": trainer.module.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
            "feed": self._batches.state_dict(),
            "ranks": of_ranks,
            "epoch": self._epoch,
            "seconds": self._seconds,
            "rate": self._rate,
            "elapsed": self._elapsed + time.perf_counter() - self._began,
        }
        if why := self._folder.save(state):
            self._say(f"no checkpoint, the one before stays: {why}")
        return not why

    def _resume(self) -> None:
        saved = self._folder.saved()
        if self._ranks.rank == 0 and self._options.resume:
            self._folder.keep_log_before(saved["epoch"] if saved else 0)
        if saved is None:
            return
        if saved["shape"] != self._shape():
            raise TrainingError(f"the checkpoint is of {saved['shape']}, this is {self._shape()}")
        trainer, ranks = self._trainer, self._ranks
        trainer.module.load_state_dict(saved["model"])
        trainer.optimizer.load_state_dict(saved["optimizer"])
        self._batches.load_state_dict(saved["feed"])
        self._epoch, self._rate = saved["epoch"], saved["rate"]
        self._seconds, self._elapsed = saved["seconds"], saved["elapsed"]
        share = saved["ranks"][ranks.rank :: ranks.size]  # of more ranks than now, or of fewer
        if len(saved["ranks"]) == ranks.size:
            trainer.set_statistics(share[0]["statistics"])
        else:
            every = torch.stack([each["statistics"] for each in saved["ranks"]])
            trainer.set_statistics(every.mean(0))
        loss, correct, count = (sum(each["totals"][at] for each in share) for at in range(3))
        trainer.totals = Totals(ranks.device, loss, correct, count)
        self._rows = share[0]["rows"] if share else []

    def _say(self, words: str) -> None:
        """A reader that has gone away does not end a training."""
        if self._ranks.rank == 0:
            try:
                print(words, flush=True)
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def problems() -> tuple[type[Exception], ...]:
    """What ends the program with one line. flowos is imported where its feed is used."""
    flowos = sys.modules.get("flowos")
    return (TrainingError, flowos.FeedError) if flowos else (TrainingError,)


def main(words: list[str] | None = None) -> int:
    try:
        options = read_options(words)
        torch.backends.cudnn.benchmark = True
        if options.threads:
            torch.set_num_threads(options.threads)
        with joined(options.device) as ranks:
            return Training(options, ranks).run()
    except problems() as why:
        line = str(why).splitlines()[-1]  # a worker of DataLoader puts its traceback before it
        print(f"train.py: {line}", file=sys.stderr)
        return 2
    except RuntimeError as why:
        if "by peer" not in str(why):
            raise
        print("train.py: another rank has ended, and says why", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
