"""Grain over files, by its threads (its processes are DataLoader's)."""

from collections.abc import Callable, Iterator
from typing import Any

import grain
from job import Job
from reading import DECODERS, reader


def stacked(samples: Any) -> Any:
    import numpy

    return numpy.stack([numpy.asarray(sample) for sample in samples])


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    read = reader(job)
    count = len(job.names())
    decode = DECODERS[job.options.get("decode", "pillow")] if job.decoded else None

    def one(number: int) -> Any:
        data = read(int(number))
        return data if decode is None else decode(data)

    def start() -> Iterator[Any]:
        samples = grain.MapDataset.range(count).seed(job.seed).shuffle().repeat().map(one)
        waiting = max(4 * job.workers, 2 * job.batch_size)
        options = grain.ReadOptions(num_threads=job.workers, prefetch_buffer_size=waiting)
        batched = samples.to_iter_dataset(options)
        return iter(batched.batch(job.batch_size, batch_fn=stacked if job.decoded else list))

    return start
