"""Shards as a person gives them to a feed: damaged ones, and members by their names."""

from pathlib import Path

import pytest

import flowos as fo

from .object_store import ObjectStore, tar_of

BLOCK = 512


@pytest.mark.parametrize("of", ["s3://cut", "{url}/cut/x.tar"])
def test_a_shard_cut_inside_of_a_class_is_one_line_and_leaves_no_cache(
    store: ObjectStore, cache: Path, of: str
) -> None:
    whole = tar_of({"1.jpg": b"one", "1.cls": b"7" * 100})
    store.bucket("cut", {"x.tar": whole[: 3 * BLOCK + 50]})
    with pytest.raises(fo.FeedError, match=r"cut/?x?\.?t?a?r?/x\.tar: not a whole tar file: .+"):
        fo.Feed(of.format(url=store.url), cache, batch_size=1)
    assert not cache.exists() or list(cache.iterdir()) == []


@pytest.mark.parametrize("member", ["JPG", ".JPG", "jpg"])
def test_a_member_is_named_in_any_case(store: ObjectStore, tmp_path: Path, member: str) -> None:
    shard = tar_of({"1.JPG": b"one", "1.png": b"other", "2.jpg": b"two"})
    (tmp_path / "x.tar").write_bytes(shard)
    store.bucket("shards", {"x.tar": shard})
    for source in (tmp_path / "x.tar", "s3://shards"):
        with fo.Feed(source, batch_size=2, shuffle=False, member=member) as feed:
            assert [bytes(one) for samples, _ in feed for one in samples] == [b"one", b"two"]


@pytest.mark.parametrize("blocks", [1, 10, 20, 21, 22, 300])
@pytest.mark.parametrize("kept", [None, 4 * BLOCK])
def test_an_archive_behind_the_end_of_another_is_refused(
    store: ObjectStore, tmp_path: Path, blocks: int, kept: int | None
) -> None:
    """GNU tar, tarfile and WebDataset read none of its samples, and say nothing."""
    one = tar_of({"1.jpg": b"one"})[: 2 * BLOCK]
    joined = one + bytes(blocks * BLOCK) + tar_of({"2.jpg": b"two" * 1000})[:kept]
    (tmp_path / "x.tar").write_bytes(joined)
    store.bucket("joined", {"x.tar": joined})
    for source in (tmp_path / "x.tar", "s3://joined"):
        with pytest.raises(
            fo.FeedError, match=r"x\.tar.* another archive .*cat a\.tar b\.tar"
        ) as e:
            fo.Feed(source, batch_size=1)
        assert f"from byte {(2 + blocks) * BLOCK} on" in str(e.value)


@pytest.mark.parametrize("zeros", [0, 1, 2, 20, 21, 300])
def test_an_archive_may_end_with_any_number_of_zero_blocks(
    store: ObjectStore, tmp_path: Path, zeros: int
) -> None:
    shard = tar_of({"1.jpg": b"one", "2.jpg": b"two"})[: 4 * BLOCK] + bytes(zeros * BLOCK)
    (tmp_path / "x.tar").write_bytes(shard)
    store.bucket("ends", {"x.tar": shard})
    for source in (tmp_path / "x.tar", "s3://ends"):
        with fo.Feed(source, batch_size=2) as feed:
            assert feed.samples == 2
