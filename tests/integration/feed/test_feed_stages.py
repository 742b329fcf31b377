"""What a feed says of its stages, and for which one all else waits."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from prometheus_client import CollectorRegistry

import flowos as fo
from flowos.operations.feed import FeedCollector
from tests.waiting import comes

from .shared import content

NAMES = [f"{number:03}.bin" for number in range(60)]
READ_SECONDS = 0.004


class Slow(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, of which each takes its time."""

    protocol = "slow"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix("slow://"))
        return stripped

    def cat_file(self, path: str, *args: Any, **how: Any) -> bytes:
        time.sleep(READ_SECONDS)
        data: bytes = super().cat_file(path, *args, **how)
        return data


@pytest.fixture
def slow() -> Iterator[str]:
    fsspec.register_implementation("slow", Slow, clobber=True)
    fsspec.filesystem("slow").pipe({f"/data/{name}": content(name) for name in NAMES})
    yield "slow://data"
    MemoryFileSystem.store.clear()


def binding(feed: fo.Feed, seconds_of_consumer: float = 0.0) -> str:
    """What binds in the next epoch."""
    feed.set_epoch(feed.next_epoch)
    before = feed.stats()
    for _ in feed:
        time.sleep(seconds_of_consumer)
    found = feed.stats().binding(before)
    assert found
    assert 0.05 <= found.share <= 1.0
    return found.name


def test_a_slow_source_binds_and_all_of_it_is_counted(slow: str) -> None:
    with fo.Feed(slow, batch_size=6, max_in_flight=1) as feed:
        assert comes(lambda: binding(feed) == "fetch")
        assert feed.stats().stage("list").samples == len(NAMES)
    fetch, handed = (feed.stats().stage(name) for name in ("fetch", "hand_over"))
    assert handed.samples == len(NAMES)
    assert fetch.samples >= len(NAMES)
    assert fetch.seconds >= READ_SECONDS * fetch.samples
    assert fetch.queued_seconds > 0  # another one is asked for while one is read
    assert feed.stats().stage("decode").samples == 0


def test_what_is_cached_is_counted_once(data: Path, cache: Path) -> None:
    size = sum(file.stat().st_size for file in data.rglob("*.jpg"))
    with fo.Feed(data, cache, batch_size=10) as feed:
        list(feed.epoch(0))
        list(feed.epoch(1))
    stats = feed.stats()
    by_name = {stage.name: stage for stage in stats.stages}
    early, late, fetch = (by_name[name] for name in ("list", "cache_write", "fetch"))
    # What is read while a folder is listed is cached then; on a busy machine that is not all.
    assert stats.source_bytes == early.bytes + late.bytes == size
    assert by_name["hand_over"].samples == 200
    assert fetch.samples == stats.cache_samples + late.samples
    assert fetch.bytes == stats.cache_bytes + late.bytes


def test_a_quick_function_gets_several_samples_at_once_each_is_right_and_counted(
    data: Path,
) -> None:
    def decode(sample: memoryview) -> int:
        if len(sample) % 7 == 0:
            raise ValueError("seven")
        return len(sample)

    sizes = [len(file.read_bytes()) for file in sorted(data.rglob("*.jpg"))]
    good = [size for size in sizes if size % 7]
    assert 0 < len(good) < len(sizes)
    options: dict[str, Any] = {"shuffle": False, "on_error": "skip", "max_skipped": 1000}
    with fo.Feed(data, batch_size=50, decode=decode, threads=1, **options) as feed:
        for epoch in range(3):
            batches = [values for values, _ in feed.epoch(epoch)]
            assert [value for values in batches for value in values] == good
        assert feed._decoding is not None
        assert feed._decoding._samples_at_once() > 1
        found = feed.stats().stage("decode")
    assert (found.samples, found.bytes) == (3 * len(good), 3 * sum(good))


def test_a_slow_decode_function_binds(data: Path) -> None:
    def decode(_: memoryview) -> int:
        time.sleep(0.004)
        return 0

    with fo.Feed(data, batch_size=10, decode=decode, threads=1) as feed:
        assert comes(lambda: binding(feed) == "decode")
        found = feed.stats().stage("decode")
        epochs = feed.next_epoch
        assert found.samples == 100 * epochs
        assert found.bytes == epochs * sum(file.stat().st_size for file in data.rglob("*.jpg"))
        assert found.seconds >= 0.4
        assert found.queued_seconds > found.seconds


def test_a_slow_consumer_binds(data: Path) -> None:
    with fo.Feed(data, batch_size=10) as feed:
        list(feed.epoch(0))
        time.sleep(0.1)  # the next epoch is there
        assert comes(lambda: binding(feed, 0.02) == "consumer")
        assert feed.stats().consumer_seconds >= 0.2


def test_a_slow_source_before_a_quick_decode_function_binds(slow: str) -> None:
    with fo.Feed(slow, batch_size=6, max_in_flight=1, decode=len, threads=1) as feed:
        assert comes(lambda: binding(feed) == "fetch")


def samples_of(feed: fo.Feed) -> dict[tuple[str, str], float]:
    registry = CollectorRegistry()
    registry.register(FeedCollector([feed]))
    return {
        (sample.name, sample.labels.get("stage", "")): sample.value
        for family in registry.collect()
        for sample in family.samples
        if family.type == "counter"
    }


def test_no_counter_of_prometheus_goes_back(slow: str, cache: Path) -> None:
    with fo.Feed(slow, cache, batch_size=6, max_in_flight=4) as feed:
        before = samples_of(feed)
        for _ in range(2):
            for _ in feed:
                now = samples_of(feed)
                assert all(now[name] >= value for name, value in before.items())
                before = now
    assert all(samples_of(feed)[name] >= value for name, value in before.items())
    assert before["flowos_feed_stage_seconds_total", "fetch"] > 0
    assert before["flowos_feed_stage_bytes_total", "hand_over"] > 0
    assert ("flowos_feed_consumer_seconds_total", "") in before


def test_the_stats_say_it_in_words(slow: str) -> None:
    with fo.Feed(slow, batch_size=6, max_in_flight=1) as feed:
        list(feed.epoch(0))
    assert "hand_over " in str(feed.stats())
    assert "s (60 samples)" in str(feed.stats())
    assert str(feed.stats()).endswith("%")
