"""FlowOS."""

from collections.abc import Callable, Iterator
from typing import Any

from job import Job

_feeds: list[Any] = []


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    import flowos as fo

    def start() -> Iterator[Any]:
        decode = fo.decode.jpeg(224, crop="none") if job.decoded else None  # type: ignore[attr-defined]
        feed = fo.Feed(  # type: ignore[attr-defined]
            job.root,
            cache=job.cache or None,
            batch_size=job.batch_size,
            shuffle=True,
            seed=job.seed,
            decode=decode,
            **_options(job),
        )
        _feeds.append(feed)
        epoch = 0
        while True:
            for samples, _ in feed.epoch(epoch):
                yield samples
            epoch += 1

    return start


def _options(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {name: int(value) for name, value in job.options.items()}
    if job.workers:
        found["most_in_flight"] = job.workers
    return found


def told() -> dict[str, Any]:
    """What the feed says of itself."""
    stats = _feeds[0].stats()
    names = ("source_bytes", "cache_bytes", "source_samples", "cache_samples", "waits", "depth")
    return {name: getattr(stats, name) for name in names}
