"""tf.data over files, by its own threads."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from job import Job


def decoded(data: Any) -> Any:
    small = tf.image.resize(tf.io.decode_jpeg(data, channels=3), [224, 224], antialias=True)
    return tf.cast(tf.round(small), tf.uint8)


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    paths = job.paths()

    def start() -> Iterator[Any]:
        samples = tf.data.Dataset.from_tensor_slices(paths)
        samples = samples.shuffle(len(paths), seed=job.seed).repeat()
        samples = samples.map(tf.io.read_file, num_parallel_calls=job.workers, deterministic=False)
        if job.decoded:
            samples = samples.map(decoded, num_parallel_calls=job.workers, deterministic=False)
        batches = samples.batch(job.batch_size).prefetch(8)
        options = tf.data.Options()
        options.threading.private_threadpool_size = max(job.workers, 2)
        return iter(batches.with_options(options).as_numpy_iterator())

    return start
