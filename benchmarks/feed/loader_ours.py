"""FlowOS."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from job import Job

_feeds: list[Any] = []
_after: list[dict[str, int]] = []
COUNTED = ("source_bytes", "cache_bytes", "source_samples", "cache_samples", "waits", "depth")


def open_batches(job: Job) -> Callable[[], Iterator[Any]]:
    import flowos as fo
    import flowos._native  # before the clock starts, as the others are imported

    make, decode = fo.Feed, fo.decode  # which imports them

    def start() -> Iterator[Any]:
        feed = make(
            job.root,
            cache=job.cache or None,
            batch_size=job.batch_size,
            seed=job.seed,
            decode=decode.jpeg(224, crop="none") if job.decoded else None,
            **_options(job),
        )
        _feeds.append(feed)
        for epoch in count():
            for samples, _ in feed.epoch(epoch):
                yield samples
            _after.append(_counts())

    return start


def _options(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {name: int(value) for name, value in job.options.items()}
    if job.workers:
        found["max_in_flight"] = job.workers
    return found


def _counts() -> dict[str, int]:
    stats = _feeds[0].stats()
    return {name: getattr(stats, name) for name in COUNTED}


def summary() -> dict[str, Any]:
    """The feed's statistics at the end of each epoch and now."""
    return {
        "now": _counts(),
        "epochs": [*_after, _counts()],
        "complaint": _feeds[0].stats().complaint,
    }
