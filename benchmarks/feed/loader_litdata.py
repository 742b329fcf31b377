"""LitData over its chunks, which it copies to this node one by one."""

from collections.abc import Callable, Iterator
from typing import Any

import litdata
from job import Job
from reading import DECODERS


class Samples(litdata.StreamingDataset):  # type: ignore[misc]
    decode: Callable[[bytes], Any] | None = None

    def __getitem__(self, number: Any) -> Any:
        data = bytes(super().__getitem__(number))
        return data if self.decode is None else type(self).decode(data)  # type: ignore[misc]


def stacked(samples: list[Any]) -> Any:
    import numpy

    return numpy.stack([numpy.asarray(sample) for sample in samples])


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    if job.decoded:
        Samples.decode = staticmethod(DECODERS[job.options.get("decode", "pillow")])

    def start() -> Iterator[Any]:
        far = {"input_dir": f"local:{job.root}", "cache_dir": job.cache}
        places = far if job.cache else {"input_dir": job.root}
        samples = Samples(**places, shuffle=True, seed=job.seed, max_cache_size="100GB")
        loader = litdata.StreamingDataLoader(
            samples,
            batch_size=job.batch_size,
            num_workers=job.workers,
            collate_fn=stacked if job.decoded else list,
            persistent_workers=job.workers > 0,
        )
        while True:
            yield from loader

    return start
