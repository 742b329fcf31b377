"""Where minibatches come from: `fo.Feed`, torch's DataLoader, or memory.

All have what `Batches` says, which is a part of `fo.Feed`. A batch is a tensor of uint8 (n, size,
size, 3), in page-locked memory where there is a GPU, and one of labels (n,).
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from made_images import made_image
from ranks import TrainingError, TrainingRanks
from torch.utils.data import DataLoader, Dataset

SUFFIXES = (".jpg", ".jpeg")
LOADERS = ("feed", "torch", "synthetic")


class Batches(Protocol):
    @property
    def classes(self) -> Sequence[str]: ...
    def __len__(self) -> int: ...
    def epoch(self, epoch: int, /) -> Any: ...
    def state_dict(self) -> dict[str, object]: ...
    def load_state_dict(self, state: Mapping[str, object], /) -> None: ...
    def stats(self) -> Any: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """data: a folder with train/CLASS/*.jpg and val/CLASS/*.jpg. cache: of the feed; None: none.

    workers: of a DataLoader, for each rank. samples: how many are made for "synthetic".
    """

    loader: str
    data: Path | None
    cache: Path | None
    batch: int
    size: int
    seed: int
    workers: int
    samples: int


def open_batches(source: ImageSource, ranks: TrainingRanks) -> tuple[Batches, Batches]:
    """To train with, and to validate with. Raises TrainingError if there are none."""
    if source.loader == "synthetic":
        return (
            Synthetic(source, ranks, training=True),
            Synthetic(source, ranks, training=False),
        )
    if source.data is None:
        raise TrainingError("no images: give --data DIR, or --data-loader synthetic")
    for part in ("train", "val"):
        if not (source.data / part).is_dir():
            raise TrainingError(f"{source.data / part}: no such folder; it is to hold CLASS/*.jpg")
    return _of_feed(source, ranks) if source.loader == "feed" else _of_torch(source, ranks)


def _of_feed(source: ImageSource, ranks: TrainingRanks) -> tuple[Batches, Batches]:
    try:
        import flowos as fo
    except ImportError as why:
        raise TrainingError(f"--data-loader feed needs flowos: {why}") from None
    assert source.data
    same: dict[str, Any] = {
        "cache": source.cache,
        "batch_size": source.batch,
        "seed": source.seed,
        "rank": ranks.rank,
        "world_size": ranks.size,
        "framework": "torch",
    }
    try:
        train: Batches = fo.Feed(
            source.data / "train",
            last="drop",
            decode=fo.decode.jpeg(source.size, crop="random", flip=True, seed=source.seed),
            **same,
        )
        validation: Batches = fo.Feed(
            source.data / "val",
            shuffle=False,
            classes=train.classes,
            decode=fo.decode.jpeg(source.size),
            **same,
        )
    except fo.FeedError as why:
        raise TrainingError(str(why)) from None
    return train, validation


def _of_torch(source: ImageSource, ranks: TrainingRanks) -> tuple[Batches, Batches]:
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise TrainingError("--data-loader torch needs Pillow: pip install pillow") from None
    assert source.data
    classes = sorted(path.name for path in (source.data / "train").iterdir() if path.is_dir())
    train = ImageFiles(source.data / "train", classes, source.size, source.seed, augmented=True)
    validation = ImageFiles(source.data / "val", classes, source.size, source.seed, augmented=False)
    return (
        Loaded(train, source, ranks, training=True),
        Loaded(validation, source, ranks, training=False),
    )


class Own:
    """The order of an epoch, the share of a rank in it, and the position: as those of a feed."""

    def __init__(
        self,
        count: int,
        classes: Sequence[str],
        source: ImageSource,
        ranks: TrainingRanks,
        *,
        training: bool,
    ) -> None:
        self.classes = classes
        self._count, self._batch, self._ranks = count, source.batch, ranks
        self._seed, self._training = source.seed, training
        self._at = {"epoch": 0, "taken": 0}

    def __len__(self) -> int:
        return len(self._share(0, 0))

    def epoch(self, epoch: int) -> "OwnEpoch":
        if self._at["epoch"] != epoch:
            self._at = {"epoch": epoch, "taken": 0}
        share = self._share(epoch, self._at["taken"])
        return OwnEpoch(self._read(epoch, share), len(share), self._taken)

    def state_dict(self) -> dict[str, object]:
        return {**self._at, "seed": self._seed, "samples": self._count}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Raises TrainingError if the state belongs to other data, or to another loader."""
        expected = {**state, "seed": self._seed, "samples": self._count}
        if state != expected or not {"epoch", "taken"} <= set(state):
            raise TrainingError(f"the checkpoint belongs to other data or another loader: {state}")
        self._at = {name: int(str(state[name])) for name in ("epoch", "taken")}

    def stats(self) -> None:
        """Nothing is known of its stages."""

    def close(self) -> None:
        """Nothing is open."""

    def _taken(self) -> None:
        self._at["taken"] += self._batch * self._ranks.size

    def _share(self, epoch: int, taken: int) -> list[list[int]]:
        """Samples of each batch of this rank, after the first `taken` of all ranks."""
        order = list(range(self._count))
        if self._training:
            random.Random(f"{self._seed} {epoch}").shuffle(order)
        whole = self._batch * self._ranks.size
        starts = range(taken, self._count, whole)
        parts = [order[start : start + whole] for start in starts]
        mine = slice(self._ranks.rank * self._batch, (self._ranks.rank + 1) * self._batch)
        if self._training:
            parts = [part for part in parts if len(part) == whole]
        return [part[mine] for part in parts if part[mine]]

    def _read(self, _epoch: int, share: list[list[int]]) -> Iterator[Any]:
        raise NotImplementedError


class OwnEpoch(Iterator[Any]):
    def __init__(self, batches: Iterator[Any], left: int, taken: Any) -> None:
        self._batches, self._left, self._taken = batches, left, taken

    def __len__(self) -> int:
        return self._left

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._left -= 1
        self._taken()
        return batch


class Synthetic(Own):
    """Made images, all of them in memory: what training costs without a loader."""

    CLASSES = ("c000", "c001", "c002", "c003")

    def __init__(self, source: ImageSource, ranks: TrainingRanks, *, training: bool) -> None:
        count = source.samples if training else max(1, source.samples // 8)
        super().__init__(count, self.CLASSES, source, ranks, training=training)
        first = 0 if training else source.samples
        self._labels = torch.arange(count) % len(self.CLASSES)
        numbers = enumerate(self._labels.tolist(), first)
        made = (made_image(label, number, source.size) for number, label in numbers)
        self._images = torch.stack([torch.from_numpy(image) for image in made])
        self._pinned = ranks.device.type == "cuda"

    def _read(self, _epoch: int, share: list[list[int]]) -> Iterator[Any]:
        for numbers in share:
            at = torch.tensor(numbers)
            shape = (len(at), *self._images.shape[1:])
            images = torch.empty(shape, dtype=torch.uint8, pin_memory=self._pinned)
            torch.index_select(self._images, 0, at, out=images)
            yield images, self._labels[at]


class ImageFiles(Dataset):  # type: ignore[misc]
    """Files of a folder, decoded by Pillow to what `fo.decode.jpeg` makes of them.

    Its items are asked for by (epoch, number); what is random is a function of these.
    """

    def __init__(
        self, root: Path, classes: Sequence[str], size: int, seed: int, *, augmented: bool
    ) -> None:
        self.classes, self._size, self._seed, self._augmented = classes, size, seed, augmented
        self._files = [
            (str(path), label)
            for label, name in enumerate(classes)
            for path in sorted((root / name).rglob("*"))
            if path.suffix.lower() in SUFFIXES
        ]
        if not self._files:
            raise TrainingError(f"{root}: no CLASS/*.jpg in it")

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, at: tuple[int, int]) -> tuple[Any, int]:
        import numpy as np
        from PIL import Image

        epoch, number = at
        file, label = self._files[number]
        rng = random.Random(f"{self._seed} {epoch} {number}")
        try:
            with Image.open(file) as opened:
                picture = opened.convert("RGB")
        except OSError as why:
            raise TrainingError(f"{file}: {why}") from None
        box = random_box(rng, *picture.size) if self._augmented else centre_box(*picture.size)
        picture = picture.resize((self._size, self._size), Image.Resampling.BILINEAR, box=box)
        pixels = np.asarray(picture)
        if self._augmented and rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(pixels.copy()), label


Box = tuple[float, float, float, float]


def random_box(rng: random.Random, width: int, height: int) -> Box:
    """As torchvision's RandomResizedCrop (Szegedy et al., CVPR 2015)."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1.0)
        aspect = (4 / 3) ** rng.uniform(-1, 1)
        w, h = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = rng.randint(0, width - w), rng.randint(0, height - h)
            return left, top, left + w, top + h
    return centre_box(width, height, share=1.0)


def centre_box(width: int, height: int, share: float = 0.875) -> Box:
    side = share * min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


class Loaded(Own):
    """By torch's DataLoader, whose workers stay over epochs."""

    def __init__(
        self, pictures: ImageFiles, source: ImageSource, ranks: TrainingRanks, *, training: bool
    ) -> None:
        super().__init__(len(pictures), pictures.classes, source, ranks, training=training)
        self._next: list[list[tuple[int, int]]] = []
        self._loader = DataLoader(
            pictures,
            batch_sampler=_Sampler(self._next),
            num_workers=source.workers,
            persistent_workers=source.workers > 0,
            pin_memory=ranks.device.type == "cuda",
        )

    def _read(self, _epoch: int, share: list[list[int]]) -> Iterator[Any]:
        self._next[:] = [[(_epoch, number) for number in numbers] for numbers in share]
        return iter(self._loader)


class _Sampler(Iterable[Any]):
    def __init__(self, batches: list[list[tuple[int, int]]]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)
