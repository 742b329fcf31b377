"""The native cache as Python sees it: what is listed, verified, dropped and removed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowos._native import Cache, Catalog, Feeder, Files
from flowos.model import FeedError

from .shared import content, make_folder

HOLDS_ON = """
import sys, time
from flowos._native import Cache
cache = Cache(sys.argv[1], 7, 100)
print(flush=True)
time.sleep(300)
"""


@pytest.fixture
def filled(data: Path, cache: Path) -> Path:
    """All 100 samples, in their listing's order, for fingerprint 7."""
    catalog = Catalog.list_folder(str(data))
    feeder = Feeder(catalog, Files(str(data), catalog), Cache(cache, 7, 100), None, batch_size=10)
    while feeder.next() is not None:
        pass
    feeder.close()
    return cache


@pytest.fixture
def another(filled: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has attached."""
    argv = [sys.executable, "-c", HOLDS_ON, str(filled)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield process
        process.kill()


def test_its_state_is_told_to_anyone(filled: Path) -> None:
    state = Cache.state_of(filled)
    assert (state.samples, state.cached, state.unverified, state.processes) == (100, 100, 0, 0)
    assert state.bytes >= sum(len(content(name)) for name in make_folder(filled.parent / "other"))
    assert filled.stat().st_mode & 0o777 == 0o700


def test_a_killed_process_is_attached_no_more(
    filled: Path, another: "subprocess.Popen[bytes]"
) -> None:
    assert Cache.state_of(filled).processes == 1
    another.send_signal(signal.SIGKILL)
    another.wait()
    assert Cache.state_of(filled).processes == 0


def test_a_cache_in_use_is_neither_removed_nor_given_to_another_data_set(
    filled: Path, another: "subprocess.Popen[bytes]"
) -> None:
    with pytest.raises(FeedError, match="is in use: end the processes"):
        Cache.clear(filled)
    with pytest.raises(FeedError, match="in use for another data set"):
        Cache(filled, 8, 100)
    another.kill()
    another.wait()
    used = sum(path.stat().st_blocks * 512 for path in filled.iterdir())
    freed = Cache.clear(filled)
    assert used - 4096 <= freed <= used
    assert not filled.exists()


def test_what_is_damaged_is_found_and_forgotten(filled: Path) -> None:
    (segment,) = filled.glob("*.seg")
    with segment.open("r+b") as file:
        first = file.read(1)[0]
        file.seek(0)
        file.write(bytes([first ^ 1]))
    assert Cache.verify(filled) == 1
    assert Cache.verify(filled) == 0
    assert Cache.state_of(filled).cached == 99


def test_one_sample_is_looked_at_and_forgotten(filled: Path, data: Path) -> None:
    cache = Cache(filled, 7, 100)
    catalog = Catalog.list_folder(str(data))
    assert all(cache.bytes_of(i) == content(catalog.name(i)) for i in range(100))
    assert cache.has(3)
    cache.drop(3)
    assert not cache.has(3)
    assert cache.bytes_of(3) is None
    assert (cache.damaged(), cache.stolen(), cache.complaint()) == (0, 0, "")
    with pytest.raises(FeedError, match="there is no sample 100 among 100"):
        cache.has(100)


def test_a_damaged_sample_is_none_and_forgotten(filled: Path) -> None:
    cache = Cache(filled, 7, 100)
    for segment in filled.glob("*.seg"):
        os.truncate(segment, 0)
    assert cache.bytes_of(5) is None
    assert not cache.has(5)
    assert cache.damaged() == 1


def test_a_forked_child_is_told_to_attach_for_itself(filled: Path) -> None:
    cache = Cache(filled, 7, 100)
    child = os.fork()
    if child == 0:
        try:
            cache.drop(1)
        except FeedError as why:
            os._exit(0 if "make the feed after the fork" in str(why) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.has(1)


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff a\n")
    Cache(folder, 7, 10)
    assert Cache.state_of(folder).samples == 10
    (folder / "index").unlink()
    with pytest.raises(FeedError) as refused:
        Cache.state_of(folder)
    assert str(folder) in str(refused.value)


def test_where_no_cache_can_be_it_is_one_line_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("not a cache")
    for folder, why in (
        (tmp_path, "holds other things: give a folder that is empty or not there"),
        (tmp_path / "mine", "Not a directory"),
        (Path("/proc/nowhere"), "cannot be made"),
    ):
        with pytest.raises(FeedError, match=why) as refused:
            Cache(folder, 7, 10)
        assert "\n" not in str(refused.value)
    with pytest.raises(FeedError, match="No such file"):
        Cache.state_of(tmp_path / "nowhere")
    assert (tmp_path / "mine").read_text() == "not a cache"
