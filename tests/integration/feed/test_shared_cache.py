"""Cache folders with what is not this user's, is no file, or is a link."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import flowos as fo
from flowos._native import Cache

WHOLE = re.compile(r"\b100 of 100 samples|^all 100 samples")

Flowos = Callable[..., subprocess.CompletedProcess[str]]
OTHER = 4_000_111  # the number of a user without a name


def warmed(flowos: Flowos, data: Path, cache: Path) -> Path:
    flowos("feed", "warm", str(data), "--cache", str(cache))
    (entry,) = cache.iterdir()
    return entry


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_is_another_users_is_listed_as_theirs_and_left_alone(
    flowos: Flowos, data: Path, cache: Path, tmp_path: Path
) -> None:
    at = ("--cache", str(cache))
    theirs = warmed(flowos, data, cache)
    for path in (theirs, *theirs.rglob("*")):
        os.chown(path, OTHER, OTHER)
    refused = flowos("feed", "clear", *at, "--yes", code=1).stderr
    assert refused.count("\n") == 1
    assert f"belongs to {OTHER}, who alone can remove it" in refused
    ours = tmp_path / "ours"
    data.rename(ours)
    flowos("feed", "warm", str(ours), *at)
    rows = json.loads(flowos("feed", "ls", *at, "--json").stdout)
    assert [(row["owner"], row["cached"], row["damaged"]) for row in rows] == [
        ("", 100, False),
        (str(OTHER), 0, False),
    ]
    assert f"{OTHER}'s" in flowos("feed", "ls", *at).stdout
    assert f"belongs to {OTHER}, who alone" in flowos("feed", "stat", *at).stdout
    assert "100 samples read, 0 damaged" in flowos("feed", "verify", *at).stdout
    assert flowos("feed", "clear", *at, "--yes").stdout.count("removed") == 1
    assert [path.name for path in cache.iterdir()] == [theirs.name]
    assert (theirs / "samples" / "index").exists()


def linked_to(entry: Path, cache: Path) -> Path:
    """The cache folder, which has a link to the entry of another one."""
    cache.mkdir()
    (cache / entry.name).symlink_to(entry)
    return cache


def test_a_link_to_an_entry_of_another_cache_is_left_alone(
    flowos: Flowos, data: Path, cache: Path, tmp_path: Path
) -> None:
    entry = warmed(flowos, data, cache)
    linked = linked_to(entry, tmp_path / "linked")
    for words in (("ls",), ("clear", "--yes")):
        said = flowos("feed", *words, "--cache", str(linked), code=1).stderr
        assert "nothing cached" in said
    refused = flowos("feed", "warm", str(data), "--cache", str(linked), code=1).stderr
    assert f"cache folder {linked / entry.name} is a link, and not used" in refused
    assert "100 of 100" in flowos("feed", "stat", "--cache", str(cache)).stdout


def test_room_is_not_made_in_another_cache_by_a_link(
    flowos: Flowos, data: Path, cache: Path, tmp_path: Path
) -> None:
    entry = warmed(flowos, data, cache)
    linked = linked_to(entry, tmp_path / "linked")
    mine = str(tmp_path / "mine")
    assert Cache.evict_oldest(str(linked), mine) == 0
    assert Cache.evict_oldest(str(cache), mine) > 0


def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    entry = warmed(flowos, data, cache)
    for name in ("source", "catalog"):
        (entry / name).unlink()
        os.mkfifo(entry / name)
    assert "(unknown" in flowos("feed", "ls", "--cache", str(cache)).stdout
    assert WHOLE.search(flowos("feed", "warm", str(data), "--cache", str(cache)).stdout)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize(
    ("name", "code", "verified"),
    [("index", 1, "damaged, "), ("slots", 1, "remove it\n"), ("1.seg", 0, "100 samples read, ")],
)
def test_what_is_no_file_among_those_of_a_cache_is_not_waited_for(
    flowos: Flowos,
    data: Path,
    cache: Path,
    name: str,
    code: int,
    verified: str,
    make: Callable[[Path], None],
) -> None:
    odd = warmed(flowos, data, cache) / "samples" / name
    odd.unlink()
    make(odd)
    at = ("--cache", str(cache))
    shown = flowos("feed", "ls", *at).stdout
    assert ("damaged" in shown) is (name == "index")
    refused = name == "slots" or (name, make) == ("index", os.mkdir)
    looked = flowos("feed", "verify", *at, code=code)
    assert verified in looked.stdout + looked.stderr
    assert looked.stderr.count("\n") == int(name == "slots")
    warmed_anew = flowos("feed", "warm", str(data), *at, code=int(refused))
    assert warmed_anew.stderr.count("\n") == int(refused)
    assert ("remove it" in warmed_anew.stderr) is refused
    assert refused or WHOLE.search(warmed_anew.stdout)
    assert (f"{odd} is not a regular file" in warmed_anew.stderr) is refused


def test_what_is_in_the_way_of_an_index_removes_no_other_data_set(
    flowos: Flowos, data: Path, cache: Path, tmp_path: Path
) -> None:
    index, at = warmed(flowos, data, cache) / "samples" / "index", ("--cache", str(cache))
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        (folder / "sample.txt").write_text("of another data set")
        flowos("feed", "warm", str(folder), *at)
    index.unlink()
    index.mkdir()
    assert str(index) in flowos("feed", "warm", str(data), *at, code=1).stderr
    rows = json.loads(flowos("feed", "ls", *at, "--json").stdout)
    kept = {row["source"]: row["cached"] for row in rows}
    assert [kept[str(folder)] for folder in folders] == [1, 1]


def test_what_a_source_is_called_breaks_no_row(
    flowos: Flowos, data: Path, cache: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "two\nlines\x1b[31m"
    data.rename(odd)
    at = ("--cache", str(cache))
    flowos("feed", "warm", odd, *at)
    assert len(flowos("feed", "ls", *at).stdout.splitlines()) == 2
    for words in (("ls",), ("stat",), ("verify",), ("clear", "--dry-run"), ("clear", "--yes")):
        said = flowos("feed", *words, *at).stdout
        assert "two?lines?[31m" in said
        assert "\x1b" not in said
    assert "two?lines?[31m" in flowos("feed", "warm", odd, *at, "--dry-run").stdout


def test_another_list_of_samples_says_that_it_drops_what_the_one_before_had_cached(
    flowos: Flowos, data: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "README.txt").write_text("what this is")
    warmed(flowos, data, cache)
    assert not caplog.messages
    fo.Feed(data, cache, batch_size=8, extensions="pictures").close()
    (said,) = caplog.messages
    assert f"{data}: the list of its samples is another one now" in said
    assert "the 101 samples cached" in said
    assert "\n" not in said
    fo.Feed(data, cache, batch_size=8, extensions="pictures").close()
    assert len(caplog.messages) == 1


def test_a_cache_folder_that_cannot_be_made_is_named_itself(flowos: Flowos, data: Path) -> None:
    said = flowos("feed", "warm", str(data), "--cache", "/proc/cache", code=1).stderr
    assert "cache folder /proc/cache cannot be made: " in said
