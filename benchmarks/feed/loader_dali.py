"""DALI on the CPU over files, by its own reader or by its worker processes."""

from collections.abc import Callable, Iterator
from typing import Any

from job import Job, Packed
from nvidia.dali import fn, pipeline_def, types
from reading import reader

PREFETCH = 4


class Samples:
    """For worker processes: returns the sample of a number, shuffled anew for each epoch."""

    def __init__(self, job: Job) -> None:
        self.read = reader(job)
        self.count = len(job.names())
        self.seed = job.seed
        self.order: tuple[int, Any] = (-1, None)

    def __call__(self, sample: Any) -> Any:
        import numpy

        epoch, place = divmod(sample.idx_in_epoch, self.count)
        if self.order[0] != epoch:
            random = numpy.random.default_rng([self.seed, epoch])
            self.order = epoch, random.permutation(self.count)
        return numpy.frombuffer(self.read(int(self.order[1][place])), dtype=numpy.uint8)


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    external = job.options.get("source") == "external"
    files = None if external else job.paths()

    @pipeline_def(  # type: ignore[untyped-decorator]
        batch_size=job.batch_size,
        num_threads=max(1, job.workers),
        device_id=None,
        prefetch_queue_depth=PREFETCH,
        py_num_workers=max(1, job.workers),
    )
    def pipeline() -> Any:
        if external:
            data = fn.external_source(
                source=Samples(job), parallel=True, batch=False, prefetch_queue_depth=PREFETCH
            )
        else:
            data, _ = fn.readers.file(
                files=files, shuffle_after_epoch=True, dont_use_mmap=True, seed=job.seed + 1
            )
        if not job.decoded:
            return data
        pixels = fn.decoders.image(data, device="cpu")
        return fn.resize(
            pixels, resize_x=224, resize_y=224, interp_type=types.INTERP_LINEAR, antialias=True
        )

    def start() -> Iterator[Any]:
        running = pipeline()
        running.build()
        while True:
            (found,) = running.run()
            yield found.as_array() if job.decoded else _packed(found)

    return start


def _packed(found: Any) -> Packed:
    samples = [found.at(i) for i in range(len(found))]
    return Packed(b"".join(samples), [len(sample) for sample in samples])
