"""DALI on the CPU over files."""

from collections.abc import Callable, Iterator
from typing import Any

from job import Job, Packed
from nvidia.dali import fn, pipeline_def, types  # type: ignore[import-not-found]


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    paths = job.paths()

    @pipeline_def(  # type: ignore[untyped-decorator]
        batch_size=job.batch_size,
        num_threads=job.workers,
        device_id=None,
        prefetch_queue_depth=int(job.options.get("prefetch", "2")),
    )
    def pipeline() -> Any:
        data, _ = fn.readers.file(
            files=paths,
            random_shuffle=True,
            initial_fill=len(paths),
            seed=job.seed + 1,
            dont_use_mmap=True,
            name="files",
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
