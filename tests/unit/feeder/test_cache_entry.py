"""A source's place in a cache folder."""

import os
import threading
import time
from pathlib import Path

import pytest

from flowos.feeder._cache_entry import CacheEntry, cache_entries, write_whole
from flowos.model import FeedError


def test_a_place_says_whose_it_is_and_is_found_again(tmp_path: Path) -> None:
    home = CacheEntry(tmp_path / "cache" / "key")
    assert home.source() == ""
    home.make("/lustre/train")
    assert home.source() == "/lustre/train"
    (tmp_path / "cache" / "another").mkdir()
    assert cache_entries(tmp_path / "cache") == (home,)
    assert home.folder.stat().st_mode & 0o777 == 0o700


def test_a_place_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FeedError, match=r"cache folder .*/file/key: Not a directory"):
        CacheEntry(tmp_path / "file" / "key").make("x")
    with pytest.raises(FeedError, match="nosuch: No such file"):
        cache_entries(tmp_path / "nosuch")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"old")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "nosuch" / "a", b"data")
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "b", b"data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_only_one_process_lists_at_a_time_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    home = CacheEntry(tmp_path)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with home.locked():
            os.write(writer, b"x")
            time.sleep(300)
        os._exit(1)
    os.read(reader, 1)
    got = threading.Event()

    def take() -> None:
        with home.locked():
            got.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert not got.wait(0.2)
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert got.wait(60)
    thread.join()
    os.close(reader)
    os.close(writer)


def test_where_nothing_can_be_locked_it_goes_on(tmp_path: Path) -> None:
    with CacheEntry(tmp_path / "nosuch").locked():
        assert not (tmp_path / "nosuch").exists()
