"""Which data sets of a cache the words after `flowos feed` mean: sources and keys, one or several.

Several words are the data set that `feed warm` makes of them, or else each its own.
"""

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import flowos as fo

Flowos = Callable[..., subprocess.CompletedProcess[str]]
SHARDS = ("s0.tar", "s1.tar", "s2.tar")


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    """Absolute; of two samples each, with a label each. Commands run in their folder."""
    for name in SHARDS:
        with tarfile.open(tmp_path / name, "w") as shard:
            for member in ("00.cls", "00.jpg", "01.cls", "01.jpg"):
                about = tarfile.TarInfo(member)
                about.size = len(f"{name} {member}")
                shard.addfile(about, BytesIO(f"{name} {member}".encode()))
    return [str(tmp_path / name) for name in SHARDS]


@pytest.fixture
def feed(flowos: Flowos, cache: Path) -> Flowos:
    """`flowos feed` with this cache."""
    return lambda *words, code=0: flowos("feed", *words, "--cache", str(cache), code=code)


def rows(feed: Flowos) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(feed("ls", "--json").stdout)
    return found


def sources(feed: Flowos) -> set[str]:
    return {row["source"] for row in rows(feed)}


def keys(feed: Flowos) -> dict[str, str]:
    return {row["source"]: Path(row["folder"]).name for row in rows(feed)}


def altered(shard: str) -> None:
    """A sample is another one; size and time of the file are as before."""
    before = Path(shard).stat()
    data = Path(shard).read_bytes()
    Path(shard).write_bytes(data.replace(b"s0.tar 01.jpg", b"S0.TAR 01.JPG"))
    os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("words", [SHARDS[:2], "absolute", "keys"])
def test_each_of_several_caches_is_compared_with_its_own_source(
    feed: Flowos, shards: list[str], cache: Path, words: str | tuple[str, ...]
) -> None:
    for shard in shards[:2]:
        feed("warm", shard)
    called = {"absolute": shards[:2], "keys": [keys(feed)[shard] for shard in shards[:2]]}
    altered(shards[0])
    which = called[words] if isinstance(words, str) else words
    told = json.loads(feed("verify", *which, "--source", "--json", code=1).stdout)
    assert [(each["kept"]["source"], each["changed"]) for each in told] == [
        (shards[0], ["s0.tar:01"]),
        (shards[1], []),
    ]
    assert len(list(cache.iterdir())) == 2


def test_all_sources_are_found_before_one_is_compared(feed: Flowos, shards: list[str]) -> None:
    for shard in shards[:2]:
        feed("warm", shard)
    altered(shards[0])
    Path(shards[1]).unlink()
    said = feed("verify", *shards[:2], "--source", code=1).stderr
    assert f"its source cannot be compared: there is no {shards[1]}: " in said
    said = feed("verify", shards[0], "--source", code=1).stdout
    assert "changed at the source: s0.tar:01" in said


def test_several_sources_are_filled_as_one_beside_each_alone(
    feed: Flowos, shards: list[str]
) -> None:
    for shard in shards[:2]:
        feed("warm", shard)
    assert feed("warm", *shards[:2], "--dry-run").stdout.endswith("0 are cached\n")
    filled = json.loads(feed("warm", *shards[:2], "--json").stdout)
    both = f"{shards[0]}, {shards[1]}"
    assert (filled["kept"]["source"], filled["kept"]["cached"]) == (both, 4)
    assert feed("warm", *shards[:2], "--dry-run").stdout.endswith("4 are cached\n")
    assert sources(feed) == {*shards[:2], both}


def test_one_source_is_filled_with_other_options_beside_the_first(
    feed: Flowos, shards: list[str]
) -> None:
    assert feed("warm", shards[0], "--member", "cls").stdout.startswith("2 of 2 samples")
    assert "; 0 are cached" in feed("warm", shards[0], "--member", "jpg", "--dry-run").stdout
    assert feed("warm", shards[0], "--member", "jpg").stdout.startswith("2 of 2 samples")


@pytest.mark.parametrize("absolute", [True, False])
def test_several_words_are_the_union_if_it_is_cached_else_each_its_own(
    feed: Flowos, shards: list[str], absolute: bool
) -> None:
    words = shards[:2] if absolute else SHARDS[:2]
    for shard in shards:
        feed("warm", shard)
    feed("warm", *shards[:2])
    both = f"{shards[0]}, {shards[1]}"
    assert feed("stat", *words).stdout.startswith(f"{both}\n")
    assert feed("verify", *words, "--source").stdout.startswith(f"{both}\n    4 samples read")
    assert feed("clear", *words, "--yes").stdout.endswith(f", of {both}\n")
    assert sources(feed) == set(shards)
    assert feed("verify", *words).stdout.count(" samples read") == 2
    assert feed("clear", *words, "--yes").stdout.count("removed 2 samples") == 2
    assert sources(feed) == {shards[2]}


def test_a_source_a_key_and_the_name_of_a_union_go_together_and_each_counts_once(
    feed: Flowos, shards: list[str]
) -> None:
    for shard in shards:
        feed("warm", shard)
    feed("warm", *shards[:2])
    both = f"{shards[0]}, {shards[1]}"
    words = ("s0.tar", keys(feed)[shards[1]], both, shards[0], f"./{SHARDS[0]}")
    told = json.loads(feed("clear", *words, "--yes", "--json").stdout)
    assert [each["source"] for each in told] == [shards[0], shards[1], both]
    assert sources(feed) == {shards[2]}


def test_what_has_nothing_cached_is_named_and_then_nothing_is_done(
    feed: Flowos, shards: list[str], cache: Path
) -> None:
    feed("warm", shards[0])
    key = keys(feed)[shards[0]]
    for command in (("stat",), ("verify",), ("verify", "--source"), ("clear", "--yes")):
        for words in ((key, "s1.tar"), ("s1.tar", shards[0]), ("s0.tar", "nosuch", "s1.tar")):
            said = feed(*command, *words, code=1).stderr
            missing = ", ".join(word for word in words if word in ("s1.tar", "nosuch"))
            assert said == (
                f"flowos feed: cache folder {cache}: there is nothing of {missing} in it, nor of "
                f"these {len(words)} as one data set\n"
            )
    assert [path.name for path in cache.iterdir()] == [key]


@pytest.mark.parametrize("absolute", [True, False])
def test_only_what_has_the_options_given_is_removed(
    feed: Flowos, shards: list[str], absolute: bool
) -> None:
    word = shards[0] if absolute else SHARDS[0]
    feed("warm", shards[0], "--member", "jpg")
    (key,) = keys(feed).values()
    said = feed("clear", word, "--member", "cls", "--yes", code=1).stderr
    assert said.endswith(f"with these options; what is called so has the key {key}\n")
    assert "2 of 2" in feed("stat", word).stdout  # there is no other one that is called so
    feed("warm", shards[0], "--member", "cls")
    said = feed("clear", word, "--yes", code=1).stderr
    assert f"{word} may be one of several; give its key: " in said
    assert key in said
    assert "removed 2" in feed("clear", word, "--member", "cls", "--yes").stdout
    assert list(keys(feed).values()) == [key]


def test_a_name_that_leads_elsewhere_now_removes_neither(
    feed: Flowos, data: Path, tmp_path: Path
) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    shutil.copytree(data, other)
    link.symlink_to(data)
    feed("warm", str(link))
    link.unlink()
    link.symlink_to(other)
    feed("warm", str(other))
    for word in (str(link), "link"):
        said = feed("clear", word, "--yes", code=1).stderr
        assert f"{word} may be one of several" in said
    assert sources(feed) == {str(link), str(other)}


def test_a_source_that_is_gone_is_removed_by_its_relative_path_too(
    feed: Flowos, shards: list[str], cache: Path
) -> None:
    feed("warm", shards[0])
    Path(shards[0]).unlink()
    assert "removed 2 samples" in feed("clear", SHARDS[0], "--yes").stdout
    assert list(cache.iterdir()) == []


class Away(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, of a server that may be away."""

    protocol = "away"
    cachable = False
    is_away = False
    connections = 0

    def __init__(self, **how: Any) -> None:
        Away.connections += 1
        if self.is_away:
            raise ConnectionRefusedError("no answer")
        super().__init__(**how)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix("away://"))
        return stripped


def test_urls_are_each_its_own_and_removed_without_their_server(
    feed: Flowos, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation("away", Away, clobber=True)
    urls = ["away://feed_words_a", "away://feed_words_b"]
    for url in urls:
        Away().pipe({f"{url}/0.jpg": b"a picture"})
        fo.Feed(url, cache, batch_size=1).close()
    assert feed("verify", *urls, "--source").stdout.count(" 0 changed at the source") == 2
    monkeypatch.setattr(Away, "is_away", True)
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "1")
    said = feed("verify", urls[0], "--source", code=1).stderr
    assert "its source cannot be compared: " in said
    assert "no answer" in said
    before = Away.connections
    assert feed("clear", *urls, "--yes").stdout.count("removed 0 samples") == 2
    assert Away.connections == before  # each may wait for long
    assert list(cache.iterdir()) == []


def test_an_empty_word_is_called_so(feed: Flowos, cache: Path) -> None:
    for words, told in ((("s0.tar", ""), " among them"), (("",), "")):
        said = feed("warm", *words, code=1).stderr
        assert said.startswith(f"flowos feed: SOURCE: an empty word{told}; expected a path, ")
    assert not cache.exists()
