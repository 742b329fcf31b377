"""`flowos feed`, as used to stage data before a job."""

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.feeder import STAGES

from .shared import content

Flowos = Callable[..., subprocess.CompletedProcess[str]]


def bytes_of(data: Path) -> int:
    return sum(file.stat().st_size for file in data.rglob("*.jpg"))


def test_a_data_set_is_warmed_looked_at_checked_and_cleared(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    words = (str(data), "--cache", str(cache))
    warmed = json.loads(flowos("feed", "warm", *words, "--json").stdout)
    assert (warmed["kept"]["samples"], warmed["kept"]["cached"]) == (100, 100)
    assert warmed["prefill"]["source_bytes"] == bytes_of(data)
    assert [stage["name"] for stage in warmed["stages"]] == list(STAGES)
    assert warmed["binding"]["name"] in STAGES  # nothing is done with the batches
    with fo.Feed(data, cache, batch_size=8) as feed:
        list(feed.epoch(0))
        assert feed.stats().source_bytes == 0
        (busy,) = json.loads(flowos("feed", "stat", "--cache", str(cache), "--json").stdout)
        assert (busy["source"], busy["cached"], busy["processes"]) == (str(data), 100, 1)
        refused = flowos("feed", "clear", *words, "--yes", code=1).stderr
        assert "process" in refused
        assert refused.count("\n") == 1
    assert "100 of 100 samples (100.0%)" in flowos("feed", "stat", *words).stdout
    assert "100 samples read, 0 damaged" in flowos("feed", "verify", *words).stdout
    assert "would remove 100 samples" in flowos("feed", "clear", *words, "--dry-run").stdout
    assert "removed 100 samples" in flowos("feed", "clear", *words, "--yes").stdout
    assert list(cache.iterdir()) == []
    assert "nothing cached" in flowos("feed", "stat", "--cache", str(cache), code=1).stderr


def test_warming_again_says_that_all_is_there_and_reads_nothing(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    words = ("feed", "warm", str(data), "--cache", str(cache))
    done = flowos(*words).stdout
    assert "100 of 100 samples are cached" in done
    assert re.search(r"B/s; (list|fetch|cache write) binds, \d+%\n", done)
    again = flowos(*words).stdout
    assert re.fullmatch(r"all 100 samples were cached already, .* kB: nothing to read\n", again)
    told = json.loads(flowos(*words, "--json").stdout)
    assert (told["already_cached"], told["prefill"]["done"], told["binding"]) == (100, 100, None)
    assert (told["prefill"]["source_bytes"], told["prefill"]["cache_bytes"]) == (0, 0)
    assert (told["kept"]["cached"], told["kept"]["processes"]) == (100, 0)


def test_what_is_from_before_a_start_of_the_machine_is_read_again(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    words = ("feed", "warm", str(data), "--cache", str(cache), "--json")
    assert json.loads(flowos(*words).stdout)["already_cached"] == 0
    (index,) = cache.glob("*/samples/index")
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    at = index.read_bytes().index(boot)
    with index.open("r+b") as file:
        file.seek(at)
        file.write(b"another")
    again = json.loads(flowos(*words).stdout)
    assert again["already_cached"] == 100
    assert again["prefill"]["cache_bytes"] == bytes_of(data)
    assert json.loads(flowos(*words).stdout)["prefill"]["cache_bytes"] == 0


def test_shards_that_a_shell_lists_are_one_source(
    flowos: Flowos, tmp_path: Path, cache: Path
) -> None:
    for number in range(5):
        with tarfile.open(tmp_path / f"{number}.tar", "w") as shard:
            shard.addfile(tarfile.TarInfo(f"{number}.jpg"))
    shards = [str(tmp_path / f"{number}.tar") for number in range(5)]
    to = ("--cache", str(cache))
    assert "5 of 5 samples are cached" in flowos("feed", "warm", *shards, *to).stdout
    named = f"{shards[0]}, {shards[1]} and 3 more"
    assert flowos("feed", "stat", *shards, *to).stdout.startswith(f"{named}\n    5 of 5 samples")
    with fo.Feed(f"{tmp_path}/*.tar", cache, batch_size=2) as feed:
        assert len(list(feed.epoch(0))) == 3
        assert feed.stats().source_samples == 0
    flowos("feed", "warm", shards[0], *to)
    keys = [path.name for path in cache.iterdir()]
    assert flowos("feed", "stat", *keys, *to).stdout.count("(100.0%)") == 2
    refused = flowos("feed", "clear", keys[0], "mistyped", *to, "--yes", code=1).stderr
    assert refused.count("\n") == 1
    assert "removed" in flowos("feed", "clear", *keys, *to, "--yes").stdout
    assert list(cache.iterdir()) == []


def test_warming_reads_each_sample_once_where_none_can_be_kept(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    words = ("feed", "warm", str(data), "--cache", str(cache), "--min-free", "100T", "--json")
    warmed = json.loads(flowos(*words, code=1).stdout)
    assert warmed["kept"]["cached"] == 0
    assert warmed["prefill"]["source_bytes"] <= bytes_of(data)


def test_a_dry_run_lists_and_reads_nothing(flowos: Flowos, data: Path, cache: Path) -> None:
    done = flowos("feed", "warm", str(data), "--cache", str(cache), "--dry-run").stdout
    assert done == f"{data}: 100 samples, sizes not known before they are read; 0 are cached\n"
    words = ("feed", "warm", str(data), "--cache", str(cache), "--dry-run", "--json")
    assert json.loads(flowos(*words).stdout)["bytes"] is None
    assert not cache.exists()


def test_what_is_said_of_a_clearing_holds_whether_it_is_done_or_not(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    flowos("feed", "warm", str(data), "--cache", str(cache))
    words = ("feed", "clear", "--cache", str(cache), "--json")
    (planned,) = json.loads(flowos(*words, "--dry-run").stdout)
    refused = flowos(*words, code=2).stderr
    assert refused.splitlines()[-1] == (
        "flowos feed: clear: asks only at a terminal; to remove this unasked, give --yes"
    )
    (done,) = json.loads(flowos(*words, "--yes").stdout)
    assert done.pop("freed_bytes") > 0
    assert done == planned


def test_a_source_without_samples_leaves_nothing_in_the_cache(
    flowos: Flowos, tmp_path: Path, cache: Path
) -> None:
    (tmp_path / "empty").mkdir()
    refused = flowos("feed", "warm", str(tmp_path / "empty"), "--cache", str(cache), code=1).stderr
    assert refused.startswith("flowos feed: no samples in ")
    assert list(cache.iterdir()) == []


def test_what_fits_is_kept_and_it_says_so(flowos: Flowos, data: Path, cache: Path) -> None:
    words = ("feed", "warm", str(data), "--cache", str(cache), "--max-bytes", "128KiB")
    done = flowos(*words)
    assert "no more is kept: " in done.stderr
    assert "it has the 131.1 kB that it may take" in done.stderr
    (kept,) = json.loads(flowos("feed", "stat", "--cache", str(cache), "--json").stdout)
    assert 0 < kept["cached"] < 100
    assert kept["bytes"] <= 128 << 10


def test_what_has_changed_at_the_source_is_named_and_forgotten(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    words = (str(data), "--cache", str(cache))
    flowos("feed", "warm", *words)
    (data / "bee" / "003.jpg").write_bytes(b"another picture")
    done = flowos("feed", "verify", *words, "--source", code=1)
    assert "changed at the source: bee/003.jpg\n" in done.stdout
    assert "    1 changed at the source, 0 not there any more" in done.stdout
    flowos("feed", "verify", *words, "--source")
    with fo.Feed(data, cache, batch_size=100, shuffle=False) as feed:
        ((samples, _),) = feed.epoch(0)
        assert b"another picture" in [bytes(sample) for sample in samples]
        assert feed.stats().source_samples == 1


def test_a_damaged_sample_is_forgotten(flowos: Flowos, data: Path, cache: Path) -> None:
    words = (str(data), "--cache", str(cache))
    flowos("feed", "warm", *words)
    (segment,) = cache.glob("*/samples/*.seg")
    at = segment.read_bytes().index(content("cat/010.jpg")[:64])
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(b"\0\0")
    (told,) = json.loads(flowos("feed", "verify", *words, "--json", code=1).stdout)
    assert told["damaged"] == 1
    assert "99 of 100 samples" in flowos("feed", "stat", *words).stdout
    assert "1 of 1" not in flowos("feed", "verify", *words).stdout


def test_only_what_is_ours_is_removed(flowos: Flowos, data: Path, cache: Path) -> None:
    flowos("feed", "warm", str(data), "--cache", str(cache))
    (home,) = cache.iterdir()
    (home / "thesis.tex").write_text("mine")
    (cache / "photos").mkdir()
    refused = flowos("feed", "clear", "--cache", str(cache), "--yes", code=1).stderr
    assert "what is left in it is not ours" in refused
    assert (home / "thesis.tex").read_text() == "mine"
    assert (cache / "photos").is_dir()
    assert [path.name for path in home.iterdir()] == ["thesis.tex"]


def test_bad_words_are_one_line(flowos: Flowos, data: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    (tmp_path / "file").touch()
    for words, code, said in (
        (("warm", str(tmp_path / "nosuch"), "--cache", cache), 1, "there is no"),
        (("stat", "--cache", cache), 1, "No such file"),
        (("stat", str(data), "--cache", str(tmp_path)), 1, "there is nothing of"),
        (("verify", "--cache", str(tmp_path), "--source"), 1, "name it"),
        (("warm", str(data), "--cache", str(tmp_path / "file" / "x")), 1, "Not a direc"),
        (
            ("warm", str(data), "--cache", cache, "--dtype", "unit8"),
            1,
            "--dtype unit8 is not a dtype",
        ),
        (("warm", str(data), "--cache", str(data)), 1, "is the source"),
        (("warm", str(data), "--cache", str(data / "cc")), 1, "lies in the source"),
        (("warm", str(data), "--cache", str(data / "cc"), "--dry-run"), 1, "lies in the source"),
    ):
        refused = flowos("feed", *words, code=code).stderr
        assert said in refused
        assert refused.startswith("flowos feed: ")
        assert "Feed:" not in refused
        assert refused.count("\n") == 1
    assert (
        "no size such as"
        in flowos("feed", "warm", str(data), "--cache", cache, "--max-bytes", "lots", code=2).stderr
    )


def test_samples_that_cannot_be_read_are_counted_and_the_rest_is_kept(
    flowos: Flowos, data: Path, cache: Path
) -> None:
    (data / "cat" / "000.jpg").unlink()
    (data / "cat" / "000.jpg").symlink_to("nowhere")
    done = flowos("feed", "warm", str(data), "--cache", str(cache), code=1)
    assert "99 of 100 samples are cached" in done.stdout
    assert "1 samples could not be read" in done.stderr


def test_progress_is_shown_and_an_interrupt_keeps_what_is_there(
    terminal: Callable[..., Any], tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens.bin"
    tokens.touch()
    os.truncate(tokens, 4096 * 600_000)  # too much to end before the interrupt
    at = terminal(DATA=str(tokens), CACHE=str(tmp_path / "cache"))
    words = "$FLOWOS feed warm $DATA --cache $CACHE --dtype uint16 --length 2048"
    at.type(f"{words}; echo code=$?=\n")
    assert re.search(r"B/s  (list|fetch|cache w|hand o)", at.read_until("fetch b", "cache w"))
    at.type("\x03")
    shown = at.read_until("code=")
    assert "interrupted: " in shown
    assert "of 600000 samples are cached and stay" in " ".join(shown.split())
    at.read_until("130=")
    at.type("$FLOWOS feed stat --cache $CACHE\n")
    assert "of 600000 samples (" in at.read_until("no process", "0 processes", "1 process")


def test_a_check_shows_how_far_it_is(
    terminal: Callable[..., Any], flowos: Flowos, data: Path, cache: Path
) -> None:
    flowos("feed", "warm", str(data), "--cache", str(cache))
    at = terminal(DATA=str(data), CACHE=str(cache))
    at.type("$FLOWOS feed verify --cache $CACHE\n")
    assert "verifying [########################] 100.0%" in at.read_until("100 samples read")
    at.type("$FLOWOS feed verify $DATA --cache $CACHE --source\n")
    shown = at.read_until("0 not there any more")
    assert shown.count("verifying [########################] 100.0%") == 2
    assert "B/s" in shown


def test_somebody_at_the_terminal_is_asked_before_anything_is_removed(
    terminal: Callable[..., Any], flowos: Flowos, data: Path, cache: Path
) -> None:
    flowos("feed", "warm", str(data), "--cache", str(cache))
    at = terminal(CACHE=str(cache))
    at.type("$FLOWOS feed clear --cache $CACHE\n")
    at.read_until("[y/N]")
    at.type("n\n")
    at.read_until("nothing was removed")
    assert list(cache.glob("*/catalog"))
    at.type("$FLOWOS feed clear --cache $CACHE\n")
    at.read_until("[y/N]")
    at.type("y\n")
    at.read_until("removed 100 samples")
    assert not list(cache.iterdir())
    refused = flowos("feed", "clear", "--cache", str(cache), code=1).stderr
    assert "nothing cached" in refused


def test_the_command_line_names_its_own_options(flowos: Flowos, data: Path, cache: Path) -> None:
    (data / "ant" / "notes.pdf").touch()
    (data / "ant" / "x.bin").touch()
    for words, told in (
        ((str(data / "ant" / "x.bin"),), "as --dtype uint16, --length 1024"),
        ((str(data), "--extensions", "webp"), "as --extensions x,y, or --extensions all"),
        ((str(data), "--extensions", ","), "--extensions ,; expected endings, as --extensions jpg"),
    ):
        line = flowos("feed", "warm", *words, "--cache", str(cache), code=1).stderr
        assert told in line
        assert (line.count("\n"), "=" in line) == (1, False)
    warmed = flowos("feed", "warm", str(data), "--cache", str(cache), "--extensions", "jpg,png")
    assert "100 of 100 samples are cached" in warmed.stdout
    with fo.Feed(data, cache, batch_size=8, extensions="pictures") as feed:
        list(feed.epoch(0))
        assert feed.stats().source_bytes == 0


def test_the_data_sets_of_a_cache_are_listed_and_one_is_removed_by_its_key(
    flowos: Flowos, data: Path, cache: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    flowos("feed", "warm", str(data), "--cache", str(cache))
    data.rename(moved)
    flowos("feed", "warm", str(moved), "--cache", str(cache))
    rows = json.loads(flowos("feed", "ls", "--cache", str(cache), "--json").stdout)
    assert [row["source"] for row in rows] == [str(moved), str(data)]
    assert all(row["cached"] == 100 and row["processes"] == 0 for row in rows)
    assert rows[0]["used"] >= rows[1]["used"] > 0
    lines = flowos("feed", "ls", "--cache", str(cache)).stdout.splitlines()
    assert lines[0].split() == [
        "KEY",
        "SIZE",
        "SAMPLES",
        "LAST",
        "USED",
        "IN",
        "USE",
        "BY",
        "SOURCE",
    ]
    key = Path(rows[1]["folder"]).name
    assert lines[2].startswith(key)
    assert lines[2].endswith(str(data))
    words = ("feed", "clear", key, "--cache", str(cache))
    assert "would remove 100 samples" in flowos(*words, "--dry-run").stdout
    assert str(data) in flowos(*words, "--yes").stdout
    (left,) = json.loads(flowos("feed", "ls", "--cache", str(cache), "--json").stdout)
    assert left["source"] == str(moved)
    flowos("feed", "clear", str(data), "--cache", str(cache), "--yes", code=1)


def lost_source(entry: Path) -> None:
    (entry / "source").write_text("")


def no_source(entry: Path) -> None:
    (entry / "source").unlink()


@pytest.mark.parametrize("damage", [lost_source, no_source])
def test_what_belongs_to_no_known_source_is_listed_and_removed(
    flowos: Flowos, data: Path, cache: Path, damage: Callable[[Path], None]
) -> None:
    at = ("--cache", str(cache))
    flowos("feed", "warm", str(data), *at)
    (entry,) = cache.iterdir()
    damage(entry)
    (cache / "photos" / "samples").mkdir(parents=True)
    (row,) = json.loads(flowos("feed", "ls", *at, "--json").stdout)
    assert (row["cached"], row["damaged"]) == (100, False)
    assert row["source"].startswith("(unknown")
    assert "removed 100 samples" in flowos("feed", "clear", entry.name, *at, "--yes").stdout
    assert [path.name for path in cache.iterdir()] == ["photos"]


def cut(size: int) -> Callable[[Path], None]:
    return lambda samples: os.truncate(samples / "index", size)


def garbage(samples: Path) -> None:
    (samples / "index").write_bytes(os.urandom(5000))


def no_index(samples: Path) -> None:
    (samples / "index").unlink()


@pytest.mark.parametrize("damage", [cut(0), cut(100), cut(5000), garbage, no_index])
def test_a_damaged_cache_is_called_so_and_can_be_removed_or_filled_anew(
    flowos: Flowos, data: Path, cache: Path, damage: Callable[[Path], None]
) -> None:
    at = ("--cache", str(cache))
    flowos("feed", "warm", str(data), *at)
    (entry,) = cache.iterdir()
    damage(entry / "samples")
    (row,) = json.loads(flowos("feed", "ls", *at, "--json").stdout)
    assert (row["damaged"], row["cached"]) == (True, 0)
    assert row["bytes"] >= bytes_of(data)
    assert " damaged " in flowos("feed", "ls", *at).stdout.splitlines()[1]
    assert f"flowos feed clear {entry.name}" in flowos("feed", "stat", *at).stdout
    assert "damaged, " in flowos("feed", "verify", *at, code=1).stdout
    assert "100 of 100 samples" in flowos("feed", "warm", str(data), *at).stdout
    damage(entry / "samples")
    assert "removed what was damaged, " in flowos("feed", "clear", *at, "--yes").stdout
    assert list(cache.iterdir()) == []
