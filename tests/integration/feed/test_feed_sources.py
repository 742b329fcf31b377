"""`fo.Feed` of what Python reads, and of pictures: object stores, tables, native decoding."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flowos as fo

from .object_store import ObjectStore
from .pictures import as_file, photograph
from .shared import CLASSES, content, make_folder, taken


def test_a_bucket_feeds_as_a_folder_does_and_is_read_once(
    store: ObjectStore, tmp_path: Path
) -> None:
    names = make_folder(tmp_path / "data", each=5)
    store.bucket("photos", {f"train/{name}": content(name) for name in names})
    with (
        fo.Feed("s3://photos/train", tmp_path / "cache", batch_size=8, seed=3) as feed,
        fo.Feed(tmp_path / "data", batch_size=8, seed=3) as folder,
    ):
        assert feed.classes == CLASSES
        for epoch in range(2):
            assert taken(feed.epoch(epoch), feed) == taken(folder.epoch(epoch), folder)
        pairs = zip(feed.epoch(2), folder.epoch(2), strict=True)
        assert all(ours.tolist() == theirs.tolist() for (_, ours), (_, theirs) in pairs)
        assert feed.stats().source_samples == 20
    with fo.Feed("s3://photos/train", tmp_path / "cache", batch_size=8) as feed:
        taken(feed.epoch(0), feed)
        assert feed.stats().source_samples == 0


def test_an_object_that_is_gone_is_named(store: ObjectStore) -> None:
    store.bucket("photos", {f"{number}.jpg": b"x" * 100 for number in range(5)})
    with fo.Feed("s3://photos", batch_size=5) as feed:
        store.remove("photos", "3.jpg")
        with pytest.raises(fo.SampleError, match=r"3\.jpg"):
            list(feed.epoch(0))


@pytest.mark.usefixtures("store")
def test_a_bucket_that_is_not_there_is_one_line() -> None:
    with pytest.raises(fo.FeedError, match="s3://nosuch") as refused:
        fo.Feed("s3://nosuch", batch_size=5)
    assert "\n" not in str(refused.value)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """60 rows in six row groups of two files."""
    folder = tmp_path / "table"
    folder.mkdir()
    for part in range(2):
        numbers = range(part * 30, part * 30 + 30)
        columns = {
            "image": [content(str(number)) for number in numbers],
            "kind": [CLASSES[number % 4] for number in numbers],
        }
        pq.write_table(pa.table(columns), folder / f"{part}.parquet", row_group_size=10)
    return folder


def test_rows_of_a_table_are_samples_and_each_group_is_read_once(
    table: Path, tmp_path: Path
) -> None:
    with fo.Feed(
        table, tmp_path / "cache", batch_size=7, column="image", label_column="kind"
    ) as feed:
        for epoch in range(2):
            seen = [
                (sample, bytes(data), label)
                for samples, labels in feed.epoch(epoch)
                for sample, data, label in zip(
                    samples.indices.tolist(), samples, labels.tolist(), strict=True
                )
            ]
            assert sorted(seen) == [(n, content(str(n)), n % 4) for n in range(60)]
        assert feed.stats().source_samples <= 60


def test_a_table_without_labels_has_none(table: Path) -> None:
    with fo.Feed(table, batch_size=60, column="image") as feed:
        ((samples, labels),) = feed.epoch(0)
    assert (len(samples), labels, feed.classes) == (60, None, ())


def test_pictures_come_as_one_array_that_says_the_same_whoever_reads_it(tmp_path: Path) -> None:
    for number in range(12):
        place = tmp_path / "data" / CLASSES[number % 4] / f"{number}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(as_file(photograph(60, 80, number), "JPEG", quality=90))
    way = fo.decode.jpeg(32, crop="random", flip=True, layout="NCHW", dtype="float32")

    def arrays(rank: int, world_size: int) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        with (
            fo.Feed(
                tmp_path / "data", batch_size=4, rank=rank, world_size=world_size, decode=way
            ) as feed,
            fo.Feed(tmp_path / "data", batch_size=4, rank=rank, world_size=world_size) as plain,
        ):
            for (images, labels), (samples, _) in zip(feed.epoch(5), plain.epoch(5), strict=True):
                assert (images.shape[1:], images.dtype) == ((3, 32, 32), np.float32)
                assert len(images) == len(labels)
                found |= {
                    sample: image.tobytes()
                    for sample, image in zip(samples.indices.tolist(), images, strict=True)
                }
        return found

    alone = arrays(0, 1)
    assert len(set(alone.values())) == 12
    assert {**arrays(0, 3), **arrays(1, 3), **arrays(2, 3)} == alone


def test_pillow_decodes_in_threads_to_the_same_arrays(tmp_path: Path) -> None:
    for number in range(6):
        place = tmp_path / "data" / "c" / f"{number}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(as_file(photograph(60, 80, number), "JPEG", quality=90))
    with (
        fo.Feed(tmp_path / "data", batch_size=3, decode=fo.decode.jpeg(48)) as native,
        fo.Feed(tmp_path / "data", batch_size=3, decode=fo.decode.image(48)) as pillow,
    ):
        for (ours, _), (theirs, _) in zip(native.epoch(0), pillow.epoch(0), strict=True):
            assert ours.shape == theirs.shape == (3, 48, 48, 3)
            assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 4
