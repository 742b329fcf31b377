"""PyTorch's DataLoader over files, with the fastest collate function."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from job import Job, Packed
from reading import DECODERS, reader
from torch.utils.data import DataLoader, Dataset, Sampler


class Files(Dataset):  # type: ignore[misc]
    def __init__(self, job: Job) -> None:
        self.read = reader(job)
        self.decode = DECODERS[job.options.get("decode", "pillow")] if job.decoded else None

    def __getitem__(self, number: int) -> Any:
        data = self.read(number)
        return data if self.decode is None else self.decode(data)


class Endless(Sampler):  # type: ignore[misc]
    """An endless sampler, so that workers are not restarted for each epoch."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __iter__(self) -> Iterator[int]:
        return self.job.endless_order(len(self.job.names()))


def as_one_tensor(samples: list[bytes]) -> Any:
    """One tensor in shared memory, which is cheaper to send from a worker than bytes by a pipe."""
    data = torch.frombuffer(bytearray().join(samples), dtype=torch.uint8)
    return data, torch.tensor([len(sample) for sample in samples])


def as_pictures(samples: list[Any]) -> Any:
    return torch.stack([torch.as_tensor(sample) for sample in samples])


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    torch.set_num_threads(1)
    packed = job.options.get("collate") == "tensor"
    raw = as_one_tensor if packed else list
    options: dict[str, Any] = {"prefetch_factor": int(job.options.get("prefetch", "2"))}

    def start() -> Iterator[Any]:
        loader = DataLoader(
            Files(job),
            batch_size=job.batch_size,
            sampler=Endless(job),
            num_workers=job.workers,
            collate_fn=as_pictures if job.decoded else raw,
            **(options if job.workers else {}),
        )
        for batch in loader:
            yield Packed(batch[0].numpy(), batch[1]) if packed and not job.decoded else batch

    return start
