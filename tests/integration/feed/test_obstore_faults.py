"""Objects in a bucket, while the store, the way to it and the objects themselves go wrong."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from flowos._native import Feeder
from flowos.feeder._python_source_thread import serve
from flowos.feeder._remote import RemoteSource, open_url
from flowos.model import FeedError, SampleError

from .object_store import BadRoad, ObjectStore, Once, fed, served, tar_of

OBJECTS = {f"{number:02}.bin": b"%02d" % number * 5000 for number in range(12)}


@pytest.fixture
def store(server: ObjectStore) -> Iterator[ObjectStore]:
    server.bucket("things", OBJECTS)
    yield server
    server.forget_all()


@pytest.mark.parametrize("fault", ["500", "503", "429", "cut", "short", "late"])
def test_what_fails_three_times_in_passing_is_had_all_the_same(road: BadRoad, fault: str) -> None:
    odd = ("/things/03.bin", "/things/07.bin")
    road.fate = lambda path, before: fault if path in odd and before < 3 else ""
    patience = 5.0 if fault == "late" else 60.0
    came = served(open_url("s3://things", timeout_seconds=patience))
    assert came.failed == {}
    assert [came.pushed[at] for at in range(len(OBJECTS))] == list(OBJECTS.values())
    # Where one comes late within its 5 seconds, a busy machine may be late as well.
    asked = [road.asked.count(path) for path in odd]
    times = 5 if fault == "short" else 4  # it is asked how long they are, which counts
    assert asked == [times, times] or (fault == "late" and min(asked) >= 4)


def test_a_listing_that_fails_in_passing_is_had_all_the_same(road: BadRoad) -> None:
    road.fate = lambda _path, before: "500" if before < 3 else ""
    assert len(open_url("s3://things").catalog()) == len(OBJECTS)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("500", r"Error performing GET .* 500 .*, tried for (\d+) seconds"),
        ("cut", r".*, tried for (\d+) seconds"),
        ("short", r"5000 bytes came of 10000, tried for (\d+) seconds"),
        ("hang", r"no answer within 4 seconds, tried for (\d+) seconds"),
    ],
)
def test_what_does_not_pass_in_time_is_told_and_the_others_come(
    road: BadRoad, fault: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "8")
    road.fate = lambda path, _before: fault if path == "/things/05.bin" else ""
    source = open_url("s3://things", timeout_seconds=4 if fault == "hang" else 60.0)
    began = time.monotonic()
    came = served(source)
    said = re.fullmatch(why, came.failed[5])
    assert said
    assert 8 <= int(said[1]) <= 0.5 + time.monotonic() - began
    assert road.asked.count("/things/05.bin") > 1
    assert len(came.pushed) == len(OBJECTS) - 1


def test_what_is_refused_is_not_asked_for_again(road: BadRoad) -> None:
    road.fate = lambda path, _before: "403" if path == "/things/05.bin" else ""
    came = served(open_url("s3://things"))
    assert came.failed[5].startswith("access denied (Odd): check AWS_ACCESS_KEY_ID and AWS_SECRET")
    assert road.asked.count("/things/05.bin") == 1


def test_an_object_that_vanished_is_named(store: ObjectStore, road: BadRoad) -> None:
    def fate(path: str, before: int) -> str:
        if path == "/things/05.bin" and before == 0:
            store.remove("things", "05.bin")
        return ""

    road.fate = fate
    with pytest.raises(SampleError, match=r"^05\.bin: it is not there$"):
        fed(open_url("s3://things"))


def test_an_object_that_was_written_anew_is_read_as_it_is(
    store: ObjectStore, road: BadRoad
) -> None:
    source = open_url("s3://things")
    catalog = source.catalog()
    store.put("things", "05.bin", b"longer than it was" * 9000)
    store.put("things", "06.bin", b"shorter")
    tickets = Once([5, 6])
    source.serve(tickets, catalog)
    assert tickets.pushed == {5: b"longer than it was" * 9000, 6: b"shorter"}
    assert road.asked.count("/things/05.bin") == 1


def test_a_shard_that_was_written_anew_is_not_mixed_with_what_it_was(
    store: ObjectStore, road: BadRoad
) -> None:
    members = {f"{number}.jpg": b"%d" % number * 30_000 for number in range(6)}
    store.bucket("shards", {"x.tar": tar_of(members)})
    source = open_url("s3://shards")
    changes = threading.Event()

    def fate(_path: str, _before: int) -> str:
        if changes.is_set():
            changes.clear()
            store.put("shards", "x.tar", tar_of(dict(reversed(members.items()))))
        return ""

    road.fate = fate
    catalog = source.catalog()
    changes.set()
    feeder = Feeder(catalog, None, None, None, batch_size=2)
    serving = threading.Thread(target=source.serve, args=(feeder, catalog))
    serving.start()
    with pytest.raises(
        SampleError, match=r"x\.tar:\d: it has changed since the data set was listed"
    ):
        list(iter(feeder.next, None))
    feeder.close()
    serving.join(60)
    assert not serving.is_alive()


def test_closing_does_not_wait_for_a_store_that_hangs(road: BadRoad) -> None:
    source = open_url("s3://things")
    catalog = source.catalog()
    road.fate = lambda _path, _before: "hang"
    feeder = Feeder(catalog, None, None, None, batch_size=2)
    serving = threading.Thread(target=source.serve, args=(feeder, catalog))
    waiting = threading.Thread(target=feeder.next)
    serving.start()
    waiting.start()
    until = time.monotonic() + 60
    while len(road.asked) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(road.asked) >= 5
    began = time.monotonic()
    feeder.close()
    serving.join(60)
    waiting.join(60)
    assert not serving.is_alive()
    assert not waiting.is_alive()
    assert time.monotonic() - began < 60, "the store hangs for 120 seconds"


def test_a_skipped_object_is_counted_and_the_rest_is_fed(road: BadRoad) -> None:
    road.fate = lambda path, _before: "404" if path == "/things/05.bin" else ""
    source = open_url("s3://things")
    catalog = source.catalog()
    feeder = Feeder(catalog, None, None, None, batch_size=4, on_error="skip")
    serving = threading.Thread(target=source.serve, args=(feeder, catalog))
    serving.start()
    seen: list[int] = []
    while batch := feeder.next():
        seen += batch.samples.tolist()
    assert sorted(seen) == [at for at in range(len(OBJECTS)) if at != 5]
    assert feeder.stats().skipped >= 1
    feeder.close()
    serving.join(60)


def trying(road: BadRoad, source: RemoteSource, times: int) -> tuple[Feeder, threading.Thread]:
    """A feeder whose samples have all failed so often, and what serves it."""
    catalog = source.catalog()
    road.fate = lambda _path, _before: "500"
    feeder = Feeder(catalog, None, None, None, batch_size=2)
    serving = serve(source, feeder, catalog, None)
    feeder.seek(0, 0)
    paths = [f"/things/{name}" for name in OBJECTS]
    until = time.monotonic() + 60
    while min(map(road.asked.count, paths)) < times and time.monotonic() < until:
        time.sleep(0.01)
    return feeder, serving


def test_a_store_that_is_away_is_waited_for_and_that_is_told(
    road: BadRoad, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowos.feeder._retry._WARN_AFTER_SECONDS", 0.0)
    feeder, _ = trying(
        road, open_url("s3://things"), 6
    )  # which takes longer than it did to give up
    road.fate = lambda _path, _before: ""
    seen: list[int] = []
    while batch := feeder.next():
        seen += batch.samples.tolist()
    feeder.close()
    assert sorted(seen) == list(range(len(OBJECTS)))
    (told,) = [record.getMessage() for record in caplog.records]
    assert re.match(r"s3://things: tried without success for \d+ seconds \(.*500", told)
    assert "trying again for up to 300 seconds (FLOWOS_FEED_RETRY_SECONDS)" in told


def test_closing_ends_what_is_being_tried_again(road: BadRoad) -> None:
    feeder, serving = trying(road, open_url("s3://things"), 4)
    feeder.close()
    serving.join(60)
    assert not serving.is_alive()
    until = time.monotonic() + 60
    while "flowos-read" in {one.name for one in threading.enumerate()} and time.monotonic() < until:
        time.sleep(0.01)
    assert "flowos-read" not in {one.name for one in threading.enumerate()}


INTERRUPTED = """
import os, signal, sys, threading
import flowos as fo
threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    fo.Feed(sys.argv[1], batch_size=2)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("fault", ["500", "hang"])
def test_an_interrupt_ends_a_listing_that_is_tried_again(road: BadRoad, fault: str) -> None:
    road.fate = lambda _path, _before: fault
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "s3://things"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.stdout, done.returncode) == ("interrupted\n", 0)


def test_a_listing_that_is_refused_is_told_once(road: BadRoad) -> None:
    road.fate = lambda _path, _before: "403"
    with pytest.raises(FeedError, match=r"^s3://things: access denied"):
        open_url("s3://things").catalog()
    assert len(road.asked) == 1
