"""What a feed keeps on the node's own storage, and what it does where it cannot."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import flowos as fo

from .shared import content, make_folder, taken


def test_what_is_cached_is_not_read_again_by_the_next_process(data: Path, cache: Path) -> None:
    size = sum(len(content(name)) for name in make_folder(data))
    with fo.Feed(data, cache, batch_size=8) as feed:
        taken(feed.epoch(0), feed)
        assert feed.stats().source_bytes >= size
        taken(feed.epoch(1), feed)
        assert feed.stats().source_bytes == size
        assert feed.stats().cache_bytes >= size
    for file in data.rglob("*.jpg"):
        file.write_bytes(b"")
    with fo.Feed(data, cache, batch_size=8) as feed:
        assert len(taken(feed.epoch(0), feed)) == 100
        assert feed.stats().source_samples == 0
    assert cache.stat().st_mode & 0o077 == 0 or (next(cache.iterdir()).stat().st_mode & 0o077) == 0


def test_a_kept_listing_is_used_until_something_comes_or_goes(data: Path, cache: Path) -> None:
    for folder in (data, *data.iterdir()):
        os.utime(folder, (1e9, 1e9))
    fo.Feed(data, cache, batch_size=8).close()
    (kept,) = cache.glob("*/catalog")
    written = kept.stat().st_ino
    fo.Feed(data, cache, batch_size=8).close()
    assert kept.stat().st_ino == written
    (data / "ant" / "new.jpg").write_bytes(content("ant/new.jpg"))
    with fo.Feed(data, cache, batch_size=8) as feed:
        assert feed.samples == 101
        assert "ant/new.jpg" in taken(feed.epoch(0), feed)


def test_a_damaged_kept_listing_is_made_anew(data: Path, cache: Path) -> None:
    fo.Feed(data, cache, batch_size=8).close()
    (kept,) = cache.glob("*/catalog")
    whole = kept.read_bytes()
    for damaged in (b"", b"nothing of ours", whole[: len(whole) // 2]):
        kept.write_bytes(damaged)
        with fo.Feed(data, cache, batch_size=8) as feed:
            assert feed.samples == 100
    assert len(kept.read_bytes()) == len(whole)


def test_without_a_usable_cache_it_reads_through_and_says_so_once(
    data: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match=r"Feed: not all is kept.*Not a directory") as warned:
        feed = fo.Feed(data, tmp_path / "file" / "cache", batch_size=8)
    with feed:
        assert len(taken(feed.epoch(0), feed)) == 100
        assert "Not a directory" in feed.stats().complaint
    assert len(warned) == 1


def test_a_cache_that_is_too_small_is_filled_and_the_rest_read_through(
    data: Path, cache: Path
) -> None:
    feed = fo.Feed(data, cache, batch_size=8, cache_bytes=1 << 17)
    with pytest.warns(UserWarning, match="Feed: not all is kept") as warned:
        orders = [taken(feed.epoch(epoch), feed) for epoch in range(3)]
    assert [len(order) for order in orders] == [100, 100, 100]
    assert 0 < feed.stats().cache_samples < feed.stats().source_samples
    feed.close()
    assert len(warned) == 1


def test_what_is_read_while_it_is_listed_is_read_once_and_counts(tmp_path: Path) -> None:
    names = make_folder(tmp_path / "data", each=300)
    with fo.Feed(tmp_path / "data", tmp_path / "cache", batch_size=8) as feed:
        early = feed.stats()
        assert early.source_bytes <= sum(len(content(name)) for name in names)
        assert sorted(taken(feed.epoch(0), feed)) == sorted(names)
    assert feed.stats().source_samples == 1200
    assert feed.stats().source_bytes == sum(len(content(name)) for name in names)


def test_only_the_first_listing_for_a_cache_reads_meanwhile(data: Path, cache: Path) -> None:
    fo.Feed(data, cache, batch_size=8).close()
    (data / "ant" / "new.jpg").write_bytes(content("ant/new.jpg"))
    for kept in (cache, None):
        with fo.Feed(data, kept, batch_size=8) as feed:
            assert (feed.samples, feed.stats().source_samples) == (101, 0)


def test_what_is_read_early_stays_within_the_room_of_the_cache(data: Path, cache: Path) -> None:
    feed = fo.Feed(data, cache, batch_size=8, cache_bytes=1 << 16)
    assert feed.stats().source_bytes <= 1 << 16
    with pytest.warns(UserWarning, match="Feed: not all is kept"):
        assert len(taken(feed.epoch(0), feed)) == 100
    feed.close()


@pytest.mark.parametrize("place", ["data", "data/cc", "data/ant/deep/cc", "link", "link/cc"])
def test_a_cache_in_the_source_is_refused_and_nothing_is_made_there(
    data: Path, place: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(data)
    before = sorted(tmp_path.rglob("*"))
    for source in (data, tmp_path / "link"):
        with pytest.raises(fo.FeedError, match=r"^Feed: the cache folder .* source, .*outside"):
            fo.Feed(source, tmp_path / place, batch_size=8)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_shards_takes_no_cache_which_would_make_samples_of_the_shards(
    tmp_path: Path,
) -> None:
    make_folder(tmp_path / "ants", each=1)
    (tmp_path / "shards").mkdir()
    with tarfile.open(tmp_path / "shards" / "0.tar", "w") as shard:
        shard.add(tmp_path / "ants" / "ant" / "000.jpg", "000.jpg")
    with pytest.raises(fo.FeedError, match="lies in the source"):
        fo.Feed(tmp_path / "shards", tmp_path / "shards" / "cc", batch_size=1)
    named = fo.Feed(tmp_path / "shards" / "*.tar", tmp_path / "shards" / "cc", batch_size=1)
    with named:
        assert named.stats().complaint == ""


def test_a_cache_beside_the_samples_which_no_listing_sees_is_used(data: Path) -> None:
    with fo.Feed(data, data / ".cache", batch_size=8) as feed:
        assert (feed.samples, feed.stats().complaint) == (100, "")
    np.save(data / "tokens.npy", np.zeros(8, dtype="u2"))
    with fo.Feed(data, data / "cc", batch_size=8, length=2) as feed:
        assert (feed.samples, feed.stats().complaint) == (4, "")


def test_a_cache_that_a_listing_finds_by_a_link_or_from_before_is_refused_and_named(
    data: Path, cache: Path, tmp_path: Path
) -> None:
    cache.mkdir()
    (data / "more").symlink_to(cache)
    with pytest.raises(fo.FeedError, match=rf"^Feed: {data}: more/\w+ in it is a cache of "):
        fo.Feed(data, cache, batch_size=8)
    (data / "more").unlink()
    fo.Feed(data, cache, batch_size=8).close()
    cache.rename(data / "old")
    with pytest.raises(fo.FeedError, match=rf"^Feed: {data}: old/\w+ in it is a cache of samples"):
        fo.Feed(data, tmp_path / "new", batch_size=8)


TRUNCATED = """
import faulthandler, os, sys
from pathlib import Path
import flowos as fo
feed = fo.Feed(sys.argv[1], sys.argv[2], batch_size=5)
faulthandler.enable()
seen = 0
for epoch in range(4):
    for samples, _ in feed.epoch(epoch):
        seen += len(samples)
        if epoch == 1:
            for file in Path(sys.argv[2]).rglob("*"):
                if file.is_file():
                    os.truncate(file, 0)
print(seen, flush=True)
"""


def test_a_cache_truncated_in_use_stops_no_program(data: Path, cache: Path) -> None:
    """Nor one that has Python tell of faults, which takes SIGBUS for itself."""
    words = [sys.executable, "-c", TRUNCATED, str(data), str(cache)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "400\n"), done.stderr
