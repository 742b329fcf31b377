"""The native feeder as Python sees it, over real files."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowos._native import Batch, Cache, Catalog, Feeder, Files, Labels
from flowos.model import FeedError, SampleError

COUNT = 200


def content(sample: int) -> bytes:
    return (b"%06d" % sample) * (1 + sample * 7 % 50)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    root.mkdir()
    for sample in range(COUNT):
        (root / f"{sample:06}").write_bytes(content(sample))
    return root


def feeder_of(root: Path, cache: Cache | None = None, **settings: Any) -> Feeder:
    catalog = Catalog.list_folder(str(root))
    return Feeder(catalog, Files(str(root), catalog), cache, None, **{"batch_size": 16, **settings})


def taken(feeder: Feeder) -> list[Batch]:
    batches = []
    while batch := feeder.next():
        batches.append(batch)
    return batches


def pieces(batch: Batch) -> list[bytes]:
    data = batch.data
    return [data[o : o + n].tobytes() for o, n in zip(batch.offsets, batch.lengths, strict=True)]


def check(batches: list[Batch]) -> list[int]:
    """Each piece is its sample's. The samples, in order."""
    seen: list[int] = []
    for batch in batches:
        assert pieces(batch) == [content(sample) for sample in batch.samples]
        seen += batch.samples.tolist()
    return seen


def test_an_epoch_has_each_sample_once_with_its_own_bytes(root: Path) -> None:
    feeder = feeder_of(root, seed=3)
    feeder.seek(0, 0)
    first = check(taken(feeder))
    feeder.seek(1, 0)
    second = check(taken(feeder))
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    again = feeder_of(root, seed=3)
    again.seek(1, 0)
    assert check(taken(again)) == second


def test_ranks_resume_where_others_stopped_with_another_world_size(root: Path) -> None:
    seen: list[int] = []
    counts = set()
    for rank in range(2):
        feeder = feeder_of(root, rank=rank, world_size=2, seed=1)
        feeder.seek(4, 0)
        for _ in range(3):
            batch = feeder.next()
            assert batch
            seen += check([batch])
        start = feeder.start_after(0, 3)
    for rank in range(3):
        feeder = feeder_of(root, rank=rank, world_size=3, seed=1)
        feeder.seek(4, start)
        batches = taken(feeder)
        assert len(batches) == feeder.batches(start)
        counts.add(len(batches))
        seen += check(batches)
    assert sorted(seen) == list(range(COUNT))
    assert len(counts) == 1


def test_arrays_are_views_that_keep_the_memory(root: Path) -> None:
    feeder = feeder_of(root)
    batch = feeder.next()
    assert batch
    data, samples, offsets, lengths = batch.data, batch.samples, batch.offsets, batch.lengths
    assert data.dtype == np.uint8
    assert {a.dtype for a in (samples, offsets, lengths)} == {np.dtype(np.int64)}
    assert not any(a.flags.writeable for a in (samples, offsets, lengths))
    assert batch.data.ctypes.data == data.ctypes.data
    del batch
    gc.collect()
    taken(feeder)
    feeder.close()
    del feeder
    gc.collect()
    for sample, offset, length in zip(samples, offsets, lengths, strict=True):
        assert data[offset : offset + length].tobytes() == content(int(sample))


def test_labels_are_looked_up_for_a_batch_into_an_array_of_its_own(root: Path) -> None:
    batch = feeder_of(root).next()
    assert batch
    for values in (3 * np.arange(COUNT), np.linspace(0.0, 1.0, COUNT)):
        found = Labels(values).of(batch)
        assert found.dtype == values.dtype
        assert found.flags.owndata
        assert found.flags.writeable
        assert np.array_equal(found, values[batch.samples])
    with pytest.raises(IndexError, match="another data set"):
        Labels(values[:2]).of(batch)
    with pytest.raises(ValueError, match="8 bytes"):
        Labels(np.zeros(COUNT, dtype=np.int32))


def test_memory_that_was_let_go_is_used_again(root: Path) -> None:
    feeder = feeder_of(root, memory_bytes=1)
    places = set()
    for epoch in range(4):
        feeder.seek(epoch, 0)
        while batch := feeder.next():
            places.add(batch.data.ctypes.data)
            del batch
    assert len(places) <= 8


def test_the_second_epoch_comes_from_the_cache(root: Path, tmp_path: Path) -> None:
    catalog = Catalog.list_folder(str(root))
    cache = Cache(str(tmp_path / "cache"), catalog.cache_key(), len(catalog))
    feeder = feeder_of(root, cache)
    for epoch in range(2):
        feeder.seek(epoch, 0)
        assert len(check(taken(feeder))) == COUNT
    stats = feeder.stats()
    assert stats.source_samples == COUNT
    assert stats.source_bytes == sum(len(content(s)) for s in range(COUNT))
    assert stats.cache_samples >= COUNT
    assert (stats.batches, stats.complaint) == (26, "")


def test_a_missing_sample_is_an_error_with_its_name(root: Path) -> None:
    feeder = feeder_of(root, shuffle=False)
    (root / "000020").unlink()
    assert len(check([feeder.next()])) == 16  # type: ignore[list-item]
    for _ in range(2):
        with pytest.raises(SampleError, match="000020"):
            feeder.next()
    (root / "000020").write_bytes(content(20))
    feeder.seek(0, 16)
    assert check(taken(feeder)) == list(range(16, COUNT))


def test_missing_samples_are_skipped_or_replaced_and_counted(root: Path) -> None:
    feeders = {policy: feeder_of(root, on_error=policy) for policy in ("skip", "replace")}
    for sample in (3, 77):
        (root / f"{sample:06}").unlink()
    there = sorted(set(range(COUNT)) - {3, 77})
    assert sorted(check(taken(feeders["skip"]))) == there
    replaced = check(taken(feeders["replace"]))
    assert (len(replaced), sorted(set(replaced))) == (COUNT, there)
    assert feeders["skip"].stats().skipped == 2
    assert feeders["replace"].stats().replaced == 2


def test_more_lost_samples_than_allowed_end_the_feed(root: Path) -> None:
    feeder = feeder_of(root, on_error="skip", max_skipped=3)
    for sample in range(0, COUNT, 2):
        (root / f"{sample:06}").unlink()
    with pytest.raises(FeedError, match="more than 3 samples could not be had") as raised:
        taken(feeder)
    assert not isinstance(raised.value, SampleError)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"rank": 2, "world_size": 2}, "rank 2 of a world of 2"),
        ({"world_size": 0}, "world_size"),
        ({"last": "first"}, "'first' is none of drop, pad, keep"),
        ({"on_error": "ignore"}, "'ignore' is none of error, skip, replace"),
    ],
)
def test_what_cannot_be_is_refused(root: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(FeedError, match=words):
        feeder_of(root, **settings)


def test_a_position_beyond_the_data_is_refused(root: Path) -> None:
    with pytest.raises(FeedError, match="only 200 samples"):
        feeder_of(root).seek(0, 201)


def pulling(root: Path, **settings: Any) -> Feeder:
    return Feeder(Catalog.list_folder(str(root)), None, None, None, batch_size=8, **settings)


def serve(feeder: Feeder, max_tickets: int) -> None:
    while tickets := feeder.pull(max_tickets):
        for id, sample in reversed(tickets):
            if sample == 50:
                feeder.fail(id, "no such object")
            else:
                feeder.push(id, memoryview(content(sample)))


def test_threads_of_python_can_be_the_source(root: Path) -> None:
    feeder = pulling(root, on_error="skip")
    threads = [threading.Thread(target=serve, args=(feeder, count)) for count in (1, 4, 100)]
    for thread in threads:
        thread.start()
    for epoch in range(3):
        feeder.seek(epoch, 0)
        assert sorted(check(taken(feeder))) == sorted(set(range(COUNT)) - {50})
    feeder.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert feeder.stats().source_samples >= 3 * (COUNT - 1)


def test_why_a_pulled_sample_failed_is_told_with_its_name(root: Path) -> None:
    feeder = pulling(root, shuffle=False)
    feeder.seek(0, 48)
    thread = threading.Thread(target=serve, args=(feeder, 8))
    thread.start()
    with pytest.raises(SampleError, match="000050: no such object"):
        feeder.next()
    feeder.close()
    thread.join(60)


def test_what_lends_no_bytes_cannot_be_pushed(root: Path) -> None:
    feeder = pulling(root)
    feeder.seek(0, 0)
    ((id, sample),) = feeder.pull(1)
    with pytest.raises(TypeError):
        feeder.push(id, 3)  # type: ignore[arg-type]
    feeder.push(id, np.frombuffer(content(sample), np.uint8).data)
    feeder.push(id, b"twice: nobody waits for it any more")
    assert feeder.stats().source_samples == 1


def test_a_feed_that_reads_files_gives_nothing_to_pull(root: Path) -> None:
    with pytest.raises(FeedError, match="reads its files itself"):
        feeder_of(root).pull(1)


def test_closing_ends_a_wait_in_another_thread(root: Path) -> None:
    feeder = pulling(root)
    ended: list[Batch | None] = []
    thread = threading.Thread(target=lambda: ended.append(feeder.next()))
    thread.start()
    time.sleep(0.05)
    assert not ended
    feeder.close()
    thread.join(60)
    assert ended == [None]
    assert feeder.next() is None


def test_an_interrupt_ends_a_wait(root: Path) -> None:
    feeder = pulling(root)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))

    def waits() -> None:
        timer.start()
        feeder.next()

    with pytest.raises(KeyboardInterrupt):
        waits()
    timer.join()
    feeder.close()


FORKED = """
import os, sys
from flowos._native import Catalog, Feeder, Files
from flowos.model import FeedError
catalog = Catalog.list_folder(sys.argv[1])
feeder = Feeder(catalog, Files(sys.argv[1], catalog), None, None, batch_size=4)
held = feeder.next()
child = os.fork()
if child == 0:
    try:
        feeder.next()
    except FeedError as refused:
        print(refused, flush=True)
    del held, feeder
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert feeder.next() is not None
"""


def test_a_forked_child_is_told_and_ends(root: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(root)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "made before the process was forked" in told.stdout


def threads() -> set[str]:
    return {task.name for task in Path("/proc/self/task").iterdir()}


def test_a_feeder_that_is_let_go_ends_its_threads(root: Path) -> None:
    before = threads()
    feeder = feeder_of(root)
    batch = feeder.next()
    assert threads() - before
    del feeder
    gc.collect()
    until = time.monotonic() + 60  # one that was waited for is in the list a little longer
    while threads() - before and time.monotonic() < until:
        time.sleep(0.01)
    assert not threads() - before
    assert batch
    check([batch])
