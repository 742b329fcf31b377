"""SPDL's pipeline of threads over files."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from job import Job
from reading import DECODERS, reader
from spdl.pipeline import PipelineBuilder


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    read = reader(job)
    count = len(job.names())
    decode = _decoder(job)

    def one(number: int) -> Any:
        return decode(read(number))

    def many(numbers: Sequence[int]) -> Any:
        return _stacked(job, [one(number) for number in numbers])

    def start() -> Iterator[Any]:
        order = job.endless_order(count)
        if job.options.get("unit", "item") == "item":
            builder = PipelineBuilder().add_source(order)
            builder = builder.pipe(one, concurrency=job.workers, output_order="completion")
            builder = builder.aggregate(job.batch_size).pipe(lambda found: _stacked(job, found))
        else:
            lists = iter(lambda: list(islice(order, job.batch_size)), [])
            builder = PipelineBuilder().add_source(lists)
            builder = builder.pipe(many, concurrency=job.workers, output_order="completion")
        pipeline = builder.add_sink(8).build(num_threads=job.workers + 1)
        with pipeline.auto_stop():
            yield from pipeline

    return start


def _decoder(job: Job) -> Callable[[bytes], Any]:
    if not job.decoded:
        return lambda data: data
    if job.options.get("decode") != "native":
        return DECODERS[job.options.get("decode", "pillow")]
    import spdl.io

    size = spdl.io.get_video_filter_desc(scale_width=224, scale_height=224, pix_fmt="rgb24")

    def native(data: bytes) -> Any:
        frames = spdl.io.decode_packets(spdl.io.demux_image(data), filter_desc=size)
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    return native


def _stacked(job: Job, samples: list[Any]) -> Any:
    if not job.decoded:
        return samples
    import numpy

    return numpy.stack([numpy.asarray(sample) for sample in samples])
