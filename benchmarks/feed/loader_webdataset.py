"""WebDataset over tar shards, shuffled as in its documentation."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import webdataset as wds
from job import Job
from reading import DECODERS
from torch.utils.data import DataLoader

SHUFFLE_BUFFER = 1000


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    shards = sorted(str(path) for path in Path(job.root).glob("*.tar"))
    decode = DECODERS[job.options.get("decode", "pillow")] if job.decoded else None

    def collated(samples: list[tuple[bytes]]) -> Any:
        if decode is None:
            return [data for (data,) in samples]
        import numpy

        return numpy.stack([numpy.asarray(decode(data)) for (data,) in samples])

    def start() -> Iterator[Any]:
        dataset = wds.WebDataset(
            shards,
            shardshuffle=len(shards),
            nodesplitter=wds.split_by_node,
            workersplitter=wds.split_by_worker,
            seed=job.seed,
        )
        dataset = dataset.repeat().shuffle(SHUFFLE_BUFFER).to_tuple("jpg")
        batches = dataset.batched(job.batch_size, collation_fn=collated)
        return iter(DataLoader(batches, batch_size=None, num_workers=job.workers))

    return start
