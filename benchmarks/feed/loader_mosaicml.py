"""MosaicML Streaming over its shards, which it copies to this node one by one."""

from collections.abc import Callable, Iterator
from typing import Any

from job import Job
from reading import DECODERS
from streaming_here import StreamingDataset, clean_stale_shared_memory
from torch.utils.data import DataLoader


class Samples(StreamingDataset):  # type: ignore[misc]
    decode: Callable[[bytes], Any] | None = None

    def __getitem__(self, number: int) -> Any:
        data = super().__getitem__(number)["jpg"]
        return data if self.decode is None else type(self).decode(data)  # type: ignore[misc]


def stacked(samples: list[Any]) -> Any:
    import numpy

    return numpy.stack([numpy.asarray(sample) for sample in samples])


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    clean_stale_shared_memory()
    if job.decoded:
        Samples.decode = staticmethod(DECODERS[job.options.get("decode", "pillow")])

    def start() -> Iterator[Any]:
        places = {"remote": job.root, "local": job.cache} if job.cache else {"local": job.root}
        samples = Samples(**places, shuffle=True, shuffle_seed=job.seed, batch_size=job.batch_size)
        loader = DataLoader(
            samples,
            batch_size=job.batch_size,
            num_workers=job.workers,
            collate_fn=stacked if job.decoded else list,
            persistent_workers=job.workers > 0,
        )
        while True:
            yield from loader

    return start
