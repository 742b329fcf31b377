"""What was written anew under its old name at the source is not served as it was, nor mixed."""

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import flowos as fo
from flowos.feeder._obstore import _differ

from .object_store import ObjectStore, tar_of

NAMES = [f"{kind}/{number:02}.bin" for kind in "ab" for number in range(10)]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


def objects(word: str) -> dict[str, bytes]:
    return {name: f"{word} {name} ".encode() for name in NAMES}


def fed(source: str | Path, cache: Path | None) -> tuple[dict[str, bytes], int]:
    """The samples of an epoch by name, and how many were read of the source."""
    with fo.Feed(source, cache, batch_size=4, labels=None) as feed:
        got = taken(feed)
        assert taken(feed, 1) == got  # all that was read is cached by then
        stats = feed.stats()
    return got, stats.source_samples


def taken(feed: fo.Feed, epoch: int = 0) -> dict[str, bytes]:
    return {
        feed.name(sample): bytes(data)
        for samples, _ in feed.epoch(epoch)
        for sample, data in zip(samples.indices.tolist(), samples, strict=True)
    }


def rows(word: str) -> bytes:
    file = io.BytesIO()
    table = pa.table({"x": [f"{word}{row:03}".encode() * 2000 for row in range(100)]})
    pq.write_table(table, file, compression="none", use_dictionary=False, row_group_size=10)
    return file.getvalue()


def words_of(samples: dict[str, bytes]) -> set[bytes]:
    return {data[:3] for data in samples.values()}


def put_in_bucket(store: ObjectStore, files: dict[str, bytes]) -> str:
    store.bucket("things", {f"d/{name}": data for name, data in files.items()})
    return "s3://things/d"


def put_in_memory(_: ObjectStore, files: dict[str, bytes]) -> str:
    fsspec.filesystem("memory").pipe({f"/d/{name}": data for name, data in files.items()})
    return "memory://d"


@pytest.mark.parametrize("put", [put_in_bucket, put_in_memory])
def test_objects_that_were_overwritten_are_read_anew(
    put: Callable[[ObjectStore, dict[str, bytes]], str], store: ObjectStore, cache: Path
) -> None:
    url = put(store, objects("old"))
    assert fed(url, cache)[0] == objects("old")
    put(store, objects("new"))  # of the same size
    assert fed(url, cache)[0] == objects("new")
    assert fed(url, cache)[1] == 0
    put(store, objects("newer"))
    assert fed(url, cache)[0] == objects("newer")


@pytest.mark.parametrize("by", ["s3://tables/x.parquet", "{server}/tables/x.parquet"])
def test_rows_of_a_remote_file_that_was_rewritten_are_read_anew(
    by: str, store: ObjectStore, cache: Path
) -> None:
    url = by.format(server=store.url)
    store.bucket("tables", {"x.parquet": rows("old")})
    assert words_of(fed(url, cache)[0]) == {b"old"}
    store.put("tables", "x.parquet", rows("new"))
    assert words_of(fed(url, cache)[0]) == {b"new"}
    assert fed(url, cache)[1] == 0


def shard(word: str, before: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    members = {f"{number:02}.jpg": f"{word}{number}".encode() * 999 for number in range(50)}
    return tar_of({**before, **members})


@pytest.mark.parametrize("by", ["s3://shards", "{server}/shards/x.tar"])
def test_a_remote_shard_that_is_replaced_after_a_feed_was_opened_is_told(
    by: str, store: ObjectStore, cache: Path
) -> None:
    url = by.format(server=store.url)
    store.bucket("shards", {"x.tar": shard("old")})
    few = fo.Feed(url, cache, batch_size=1, labels=None, memory_bytes=1, max_in_flight=1)
    with few:
        next(few.epoch(0))  # the listing is kept, most samples are not
    with fo.Feed(url, cache, batch_size=4, labels=None) as feed:
        store.put("shards", "x.tar", shard("new", {"0.txt": b"-" * 700}))
        with pytest.raises(fo.SampleError, match=r"x\.tar:\d\d: it has changed since the data set"):
            taken(feed)
    again = fo.Feed(url, cache, batch_size=4, labels=None)
    again.close()


def test_rows_of_a_remote_file_that_is_replaced_after_a_feed_was_opened_are_not_mixed(
    store: ObjectStore,
) -> None:
    store.bucket("tables", {"x.parquet": rows("old")})
    with fo.Feed("s3://tables/x.parquet", batch_size=4, labels=None) as feed:
        store.put("tables", "x.parquet", rows("new"))
        with pytest.raises(fo.SampleError, match="has changed since the data set was listed"):
            taken(feed)


def test_tags_with_and_without_quotes_are_the_same() -> None:
    then, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    unknown = datetime(1970, 1, 1, tzinfo=UTC)

    def differ(one: tuple[str | None, datetime], other: tuple[str | None, datetime]) -> bool:
        metas = [
            {"path": "x", "size": 1, "e_tag": tag, "last_modified": at, "version": None}
            for tag, at in (one, other)
        ]
        return _differ(metas[0], metas[1])  # type: ignore[arg-type]

    assert not differ(('"a"', then), ("a", then))
    assert not differ(('W/"a"', then), ('"a"', later))
    assert differ(('"a"', then), ('"b"', then))
    assert differ((None, then), ('"b"', later))
    assert not differ((None, then), ('"b"', then.replace(microsecond=9)))
    assert not differ((None, unknown), ('"b"', then))


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def test_a_file_that_was_moved_over_another_is_read_anew(tmp_path: Path, cache: Path) -> None:
    files = objects("old")
    data = write(tmp_path / "data", files)
    fed(data, cache)
    (data / ".new").write_bytes(b"moved")
    (data / ".new").replace(data / NAMES[3])
    (data / NAMES[5]).rename(data / "a/swap")
    (data / NAMES[6]).rename(data / NAMES[5])
    (data / "a/swap").rename(data / NAMES[6])
    files |= {NAMES[3]: b"moved", NAMES[5]: files[NAMES[6]], NAMES[6]: files[NAMES[5]]}
    got, read = fed(data, cache)
    assert got == files
    assert read <= 10  # nothing was renamed in b
    assert fed(data, cache)[1] == 0


def test_of_a_folder_that_changed_only_what_was_replaced_is_read_anew(
    tmp_path: Path, cache: Path
) -> None:
    data = write(tmp_path / "data", objects("old"))
    time.sleep(2.1)  # so that the folder is newer than its files, by the clock of any file system
    (data / "a/.stray").touch()
    fed(data, cache)
    time.sleep(0.1)  # a tick of the file system's clock, after the listing was kept
    (data / "a/.stray").unlink()
    assert fed(data, cache) == (objects("old"), 0)
    time.sleep(0.1)
    (data / "a/.new").write_bytes(b"moved")
    (data / "a/.new").replace(data / NAMES[3])
    assert fed(data, cache) == ({**objects("old"), NAMES[3]: b"moved"}, 1)


def test_a_folder_in_the_place_of_another_is_read_anew_though_its_files_are_older(
    tmp_path: Path, cache: Path
) -> None:
    prepared = write(tmp_path / "prepared", objects("new"))
    for folder in (prepared, prepared / "a", prepared / "b"):
        os.utime(folder, (1, 1))
    data = write(tmp_path / "data", objects("old"))
    assert fed(data, cache)[0] == objects("old")
    shutil.rmtree(data)
    prepared.rename(data)
    assert fed(data, cache) == (objects("new"), 20)


def test_a_link_that_leads_elsewhere_now_is_read_anew(tmp_path: Path, cache: Path) -> None:
    there = write(tmp_path / "there", {"one": b"one", "other": b"other"})
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x").symlink_to(there / "one")
    assert fed(tmp_path / "data", cache)[0] == {"x": b"one"}
    (tmp_path / "data/.x").symlink_to(there / "other")
    (tmp_path / "data/.x").replace(tmp_path / "data/x")
    assert fed(tmp_path / "data", cache)[0] == {"x": b"other"}


def test_an_outdated_listing_stays_until_what_was_replaced_is_dropped(
    tmp_path: Path, cache: Path
) -> None:
    data = write(tmp_path / "data", objects("old"))
    fed(data, cache)
    (data / ".new").write_bytes(b"moved")
    (data / ".new").replace(data / NAMES[3])
    kept = next(cache.iterdir()) / "samples"
    kept.rename(tmp_path / "away")
    kept.write_text("no folder")
    with pytest.warns(UserWarning, match="not all is kept"):
        fed(data, cache)
    kept.unlink()
    (tmp_path / "away").rename(kept)
    assert fed(data, cache)[0] == {**objects("old"), NAMES[3]: b"moved"}


def all_are_old(batch: Any) -> None:
    samples, _ = batch
    assert all(bytes(data)[:3] == b"old" for data in samples)


def all_are_zero(batch: Any) -> None:
    samples, _ = batch
    assert not samples.any()


def test_a_shard_that_is_rewritten_in_its_place_in_an_epoch_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(shard("old"))
    with fo.Feed(
        tmp_path / "x.tar", batch_size=2, labels=None, memory_bytes=1, max_in_flight=1
    ) as feed:
        epoch = feed.epoch(0)
        next(epoch)
        (tmp_path / "x.tar").write_bytes(shard("new", {"0.txt": b"-" * 700}))
        with pytest.raises(fo.SampleError, match=r"x\.tar:\d\d has changed since the data set"):
            list(map(all_are_old, epoch))


def test_an_array_that_is_rewritten_in_its_place_in_an_epoch_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1000, 64), np.int64))
    with fo.Feed(tmp_path / "x.npy", batch_size=2, memory_bytes=1, max_in_flight=1) as feed:
        epoch = feed.epoch(0)
        next(epoch)
        np.save(tmp_path / "x.npy", np.ones((1000, 64), np.int64))
        with pytest.raises(fo.SampleError, match=r"x\.npy\[\d+\] has changed since the data set"):
            list(map(all_are_zero, epoch))
