"""Reading a bucket while it is being listed, and which process lists it if several start."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typing_extensions import Buffer

import flowos as fo
from flowos.feeder._interfaces import Entry, Piece, PrefetchBudget, Tickets
from flowos.feeder._listing_prefetch import ListingPrefetcher
from flowos.feeder._reader_threads import serve_in_threads

from .object_store import BadRoad, ObjectStore, tar_of
from .shared import content, taken

NAMES = [f"{number:02}.jpg" for number in range(24)]
BUCKET = "/photos"
LISTED_WHOLE = 2
"""The listing, after a look at the first page for what there is, and one for folders."""


@pytest.fixture
def photos(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that is not listed by its first page."""
    monkeypatch.setattr("flowos.feeder._obstore._PAGE", 10)
    store.bucket("photos", {name: content(name) for name in NAMES})


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def objects_asked(road: BadRoad) -> list[str]:
    return [path for path in road.asked if path.endswith(".jpg")]


@pytest.mark.usefixtures("photos")
def test_objects_are_read_while_they_are_listed_and_once(road: BadRoad, tmp_path: Path) -> None:
    def fate(path: str, before: int) -> str:
        if path == BUCKET and before == LISTED_WHOLE:
            wait_until(lambda: len(objects_asked(road)) == 10)
        return ""

    road.fate = fate
    with fo.Feed("s3://photos", tmp_path / "cache", batch_size=8, seed=5) as feed:
        assert feed.stats().source_samples >= 10
        names = taken(feed.epoch(0), feed)
        assert feed.stats().source_bytes == sum(len(content(name)) for name in NAMES)
    assert sorted(objects_asked(road)) == [f"{BUCKET}/{name}" for name in NAMES]
    with fo.Feed("s3://photos", batch_size=8, seed=5) as plain:
        assert taken(plain.epoch(0), plain) == names


@pytest.mark.usefixtures("photos")
def test_what_is_read_early_follows_the_pattern(road: BadRoad, tmp_path: Path) -> None:
    with fo.Feed("s3://photos/1*.jpg", tmp_path / "cache", batch_size=8) as feed:
        assert feed.samples == 10
        taken(feed.epoch(0), feed)
    assert sorted(objects_asked(road)) == [f"{BUCKET}/{number}.jpg" for number in range(10, 20)]


@pytest.mark.usefixtures("photos")
def test_a_listing_that_fails_ends_what_reads_meanwhile(road: BadRoad, tmp_path: Path) -> None:
    road.fate = lambda path, before: "403" if path == BUCKET and before == LISTED_WHOLE else ""
    with pytest.raises(fo.FeedError, match="s3://photos: access denied"):
        fo.Feed("s3://photos", tmp_path / "cache", batch_size=8)
    assert not [one for one in threading.enumerate() if one.name == "flowos-early"]


@pytest.mark.usefixtures("photos")
def test_what_cannot_be_read_early_is_named_when_it_is_wanted(
    road: BadRoad, tmp_path: Path
) -> None:
    road.fate = lambda path, _before: "404" if path == f"{BUCKET}/05.jpg" else ""
    with (
        fo.Feed("s3://photos", tmp_path / "cache", batch_size=8) as feed,
        pytest.raises(fo.SampleError, match=r"05\.jpg: it is not there"),
    ):
        list(feed.epoch(0))


@pytest.mark.usefixtures("photos")
def test_who_waits_for_a_listing_uses_it(road: BadRoad, tmp_path: Path) -> None:
    def fate(path: str, before: int) -> str:
        if path == BUCKET and before == LISTED_WHOLE:  # until the other is there too
            wait_until(lambda: road.asked.count(BUCKET) > LISTED_WHOLE + 1)
        return ""

    def opened(after: int) -> int:
        wait_until(lambda: road.asked.count(BUCKET) >= after)
        with fo.Feed("s3://photos", tmp_path / "cache", batch_size=8) as feed:
            return feed.samples

    road.fate = fate
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(opened, [0, LISTED_WHOLE + 1])) == [24, 24]
    assert road.asked.count(BUCKET) == LISTED_WHOLE + 2
    assert opened(0) == 24  # it does not wait for another process: it lists itself
    assert road.asked.count(BUCKET) == 2 * LISTED_WHOLE + 3


class SlowStorage:
    """A place whose things are read slowly, three at once; notes whether there are more."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.at_once = self.max_at_once = 0
        self._changed = threading.Condition()

    def serve(self, tickets: Tickets, piece_of: Callable[[int], Piece]) -> None:
        def read(number: int) -> Buffer:
            with self._changed:
                self.at_once += 1
                self.max_at_once = max(self.max_at_once, self.at_once)
                self.read.append(piece_of(number).key)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self.max_at_once >= 3, 30)
            time.sleep(0.005)
            with self._changed:
                self.at_once -= 1
            return bytes(100)

        serve_in_threads(tickets, read, 64)


def test_so_many_are_read_at_once_and_no_more_than_have_room() -> None:
    storage = SlowStorage()
    early = ListingPrefetcher(storage, PrefetchBudget(in_flight=3, max_bytes=2050))  # type: ignore[arg-type]
    some = [Entry(f"{number:02}", 100) for number in range(15)]
    early.found(some)
    early.found(some)  # as a listing does that is tried again
    early.found([Entry("unknown", -1), Entry("empty", 0), Entry("large", 5 << 20)])
    early.found([Entry(f"more {number}", 100) for number in range(15)])
    wait_until(lambda: early.samples == 20)
    early.end()
    assert early.bytes == 2000
    assert storage.max_at_once == 3
    assert sorted(storage.read)[:15] == [entry.key for entry in some]


def test_shards_are_not_read_while_they_are_indexed(store: ObjectStore, tmp_path: Path) -> None:
    store.bucket("shards", {"x.tar": tar_of({name: content(name) for name in NAMES})})
    with fo.Feed("s3://shards", tmp_path / "cache", batch_size=8) as feed:
        assert (feed.samples, feed.stats().source_bytes) == (24, 0)
