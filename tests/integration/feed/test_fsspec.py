"""Files of other protocols: memory and file by fsspec itself, and one that fails on purpose."""

import time
from collections import Counter
from collections.abc import Iterator
from json import JSONDecodeError
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import flowos as fo
from flowos.feeder import CacheLimits
from flowos.feeder._remote import open_url
from flowos.model import FeedError, SampleError
from flowos.operations.feed import CacheSelection, prefilled

from .object_store import BadRoad, Once, WebHdfs, fed, served, tar_of

FILES = {
    f"{kind}/{number:02}.bin": f"{kind}{number}".encode() * 999
    for kind in "ab"
    for number in range(9)
}


class Flaky(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, whose reads fail as often as `failures` says."""

    protocol = "flaky"
    failures: ClassVar[Counter[str]] = Counter()
    read: ClassVar[Counter[str]] = Counter()
    why: ClassVar[Exception]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix("flaky://"))
        return stripped

    def cat_file(self, path: str, *args: Any, **how: Any) -> bytes:
        name = path.rpartition("/")[2]
        self.read[name] += 1
        if self.failures[name] > 0:
            self.failures[name] -= 1
            raise self.why
        data: bytes = super().cat_file(path, *args, **how)
        return data


class Walked(AbstractFileSystem):  # type: ignore[misc]
    """Folders `a` and `b` in memory, whose listings are fsspec's own."""

    protocol = ("walked", "hf")
    cachable = False
    files: ClassVar[dict[str, bytes]] = {}
    more: ClassVar[dict[str, Any]] = {}
    """Of each file, besides its size."""
    failures: ClassVar[Counter[str]] = Counter()
    listed: ClassVar[Counter[str]] = Counter()
    why: ClassVar[Exception] = TimeoutError("no answer")

    def ls(self, path: str, **_: Any) -> list[dict[str, Any]]:
        path = path.strip("/")
        self.listed[path] += 1
        if self.failures[path] > 0:
            self.failures[path] -= 1
            raise self.why
        if path in self.files:
            return [self.info(path)]
        inside = {name for name in self.files if name.startswith(f"{path}/")}
        names = {f"{path}/" + name.removeprefix(f"{path}/").split("/")[0] for name in inside}
        if not names:
            raise FileNotFoundError(path)
        return [self.info(name) for name in sorted(names)]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = path.strip("/")
        if path not in self.files:
            return {"name": path, "type": "directory", "size": 0}
        return {"name": path, "type": "file", "size": len(self.files[path]), **self.more}

    def cat_file(self, path: str, **_: Any) -> bytes:
        return self.files[path.strip("/")]


class HttpError(OSError):
    """As of the packages that read over HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} at https://me:secret@host/x?token=secret")
        self.response = SimpleNamespace(status_code=status)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "2")
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    fsspec.register_implementation("walked", Walked, clobber=True)
    fsspec.register_implementation("hf", Walked, clobber=True)
    Walked.files = {f"data/{name}": data for name, data in FILES.items()}
    Walked.more, Walked.why = {}, TimeoutError("no answer")
    Walked.failures.clear()
    Walked.listed.clear()
    Flaky.failures.clear()
    Flaky.read.clear()
    Flaky.why = ConnectionResetError("the other end is gone\nand this is a second line")
    yield
    MemoryFileSystem.store.clear()


def put(protocol: str, root: str, files: dict[str, bytes]) -> None:
    fsspec.filesystem(protocol).pipe({f"{root}/{name}": data for name, data in files.items()})


def test_files_in_memory_are_samples() -> None:
    put("memory", "/data", FILES)
    put("memory", "/database", {"x": b"of a neighbour"})
    source = open_url("memory://data")
    assert fed(source, epochs=2) == FILES
    assert source.catalog().groups() == ["a", "b"]
    assert source.identity() == ""


def test_files_below_a_url_are_those_of_the_folder(tmp_path: Path) -> None:
    for name, data in FILES.items():
        (tmp_path / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "x" / name).write_bytes(data)
    assert fed(open_url(f"file://{tmp_path}/x")) == FILES


def test_tar_shards_are_read_in_pieces() -> None:
    members = {f"{number}.jpg": b"%d" % number * 40_000 for number in range(5)}
    put("memory", "/shards", {"a.tar": tar_of(members), "b.tar": tar_of({"x.jpg": b""})})
    wanted = {f"a.tar:{name.removesuffix('.jpg')}": data for name, data in members.items()}
    source = open_url("memory://shards")
    assert fed(source) == {**wanted, "b.tar:x": b""}
    before = source.identity()
    put("memory", "/shards", {"b.tar": tar_of({"x.jpg": b"", "y.jpg": b"1"})})
    assert before != source.identity() != ""


def test_what_fails_three_times_in_passing_is_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "60")
    put("flaky", "/data", FILES)
    Flaky.failures["03.bin"] = 3
    assert fed(open_url("flaky://data")) == FILES


@pytest.mark.parametrize("status", ["429", "503"])
def test_a_busy_server_is_not_asked_before_the_time_that_it_says(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "60")
    asked: list[float] = []

    def fate(path: str, _before: int) -> str:
        if path.endswith("/b.bin"):
            asked.append(time.monotonic())
        return f"{status} 2" if path.endswith("/b.bin") and len(asked) < 3 else ""

    files = {"a.bin": b"a" * 999, "b.bin": b"b" * 999}
    server = WebHdfs(files)
    road = BadRoad(server)
    try:
        road.fate = fate
        came = served(open_url(f"webhdfs://{road.url.partition('//')[2]}/data"))
    finally:
        road.stop()
        server.stop()
    assert (came.pushed, came.failed) == (dict(enumerate(files.values())), {})
    assert asked[1] - asked[0] >= 2
    assert asked[2] - asked[1] >= 2


def test_what_does_not_pass_in_time_is_told_in_one_line() -> None:
    put("flaky", "/data", {"03.bin": b"x", "04.bin": b"y"})
    Flaky.failures["03.bin"] = 1000
    came = served(open_url("flaky://data"))
    assert came.failed == {0: "ConnectionResetError: the other end is gone"}
    assert came.pushed == {1: b"y"}


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (FileNotFoundError("/data/03.bin"), "it is not there"),
        (PermissionError(13, "Permission denied"), "PermissionError: [Errno 13] Permission denied"),
    ],
)
def test_what_lasts_is_not_tried_again(why: Exception, told: str) -> None:
    put("flaky", "/data", {"03.bin": b"x"})
    Flaky.why, Flaky.failures["03.bin"] = why, 100
    assert served(open_url("flaky://data")).failed == {0: told}
    assert Flaky.read["03.bin"] == 1


def test_a_file_that_vanished_names_the_sample() -> None:
    put("memory", "/data", {"a": b"1", "b": b"2"})
    source = open_url("memory://data")
    source.catalog()

    class Gone:
        name = source.name

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def catalog(self, found: Any = None) -> Any:
            catalog = source.catalog(found)
            fsspec.filesystem("memory").rm("/data/b")
            return catalog

    with pytest.raises(SampleError, match=r"^b: it is not there$"):
        fed(Gone())


def test_a_protocol_whose_package_is_missing_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "paramiko", None)
    with pytest.raises(FeedError, match=r"^sftp://host/data: a package is missing: .*paramiko"):
        open_url("sftp://host/data")


def test_an_empty_or_missing_folder_is_told() -> None:
    with pytest.raises(FeedError, match=r"^memory://nowhere: nothing is there$"):
        open_url("memory://nowhere").catalog()
    with pytest.raises(FeedError, match=r"^memory://nowhere/x\.tar: it is not there$"):
        open_url("memory://nowhere/x.tar").catalog()


def test_folders_that_fsspec_walks_are_listed_as_it_does() -> None:
    source = open_url("walked://data")
    assert fed(source) == FILES
    with pytest.raises(FeedError, match=r"^walked://nowhere: nothing is there$"):
        open_url("walked://nowhere").catalog()


@pytest.mark.parametrize("why", [TimeoutError("no answer"), JSONDecodeError("half of one", "{", 1)])
def test_a_folder_that_cannot_be_listed_at_first_is_listed_in_the_end(
    why: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "60")
    Walked.failures["data/b"], Walked.why = 3, why
    assert len(open_url("walked://data").catalog()) == len(FILES)
    assert Walked.listed == {"data": 1, "data/a": 1, "data/b": 4}, "only what failed, once more"


@pytest.mark.parametrize("folder", ["data", "data/b"])
def test_a_folder_that_cannot_be_listed_is_not_left_out(folder: str) -> None:
    Walked.failures[folder] = 1000
    line = rf"^walked://{folder}: TimeoutError: no answer$"
    with pytest.raises(FeedError, match=line):
        open_url("walked://data").catalog()
    assert Walked.listed[folder] > 2


def test_a_folder_that_is_refused_is_named_at_once() -> None:
    Walked.failures["data/b"], Walked.why = 1000, PermissionError(13, "Permission denied")
    with pytest.raises(FeedError, match=r"^walked://data/b: PermissionError: .*denied$"):
        open_url("walked://data").catalog()
    assert Walked.listed["data/b"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"blob_id": "a", "last_commit": None}, {"blob_id": "b", "last_commit": None}),
        ({"sha": "a"}, {"sha": "b"}),
        ({"modificationTime": 1}, {"modificationTime": 2}),
        ({"modify": "20260101"}, {"modify": "20260102"}),
        ({"last_write_time": 1}, {"last_write_time": 2}),
        ({"ETag": "a", "mtime": 1}, {"ETag": "b", "mtime": 1}),
    ],
)
def test_what_was_replaced_by_as_many_bytes_has_another_tag(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    tags: list[str] = []
    for Walked.more in (before, before | {"accessed": 5}, after):
        tags.append(open_url("walked://data")._storage.entries()[0].tag)
    assert tags[0] == tags[1] != tags[2]


def test_what_was_replaced_by_as_many_bytes_is_read_anew(cache: Path) -> None:
    for kind in "ab":
        files = {name: kind.encode() * len(data) for name, data in Walked.files.items()}
        Walked.files, Walked.more = files, {"blob_id": f"commit {kind}"}
        with fo.Feed("hf://data", cache=cache, batch_size=3, decode=None) as feed:
            seen = [bytes(sample) for samples, _ in feed.epoch(0) for sample in samples]
        assert sorted(seen) == sorted(files.values())


def test_a_file_that_comes_short_is_no_sample() -> None:
    source = open_url("walked://data")
    catalog = source.catalog()
    whole = Walked.files["data/a/03.bin"]
    Walked.files["data/a/04.bin"] = b"written anew"
    tickets = Once([3, 4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Walked, "cat_file", lambda self, path, **_: self.files[path][:1000])
        source.serve(tickets, catalog)
    assert tickets.failed == {3: f"ConnectionError: 1000 bytes came of {len(whole)}"}
    assert tickets.pushed == {4: b"written anew"}


@pytest.mark.parametrize(
    ("status", "told", "asked"),
    [
        (401, "access denied: check HF_TOKEN", 1),
        (403, "access denied: check HF_TOKEN", 1),
        (404, "HttpError: 404 at https://host/x", 1),
        (429, "HttpError: 429 at https://host/x", 2),
        (503, "HttpError: 503 at https://host/x", 2),
    ],
)
def test_what_a_server_refuses_is_not_asked_for_again(status: int, told: str, asked: int) -> None:
    Walked.failures["data"], Walked.why = 1000, HttpError(status)
    with pytest.raises(FeedError) as said:
        open_url("hf://data").catalog()
    assert str(said.value) == f"hf://data: {told}"
    assert (Walked.listed["data"] > 1) == (asked > 1)


def test_one_file_is_no_folder() -> None:
    put("memory", "/data", {"3.bin": b"x"})
    for url in ("walked://data/a/03.bin", "memory://data/3.bin"):
        with pytest.raises(FeedError, match=rf"^{url} is one file: give the folder that it is in$"):
            open_url(url).catalog()


def test_all_is_in_the_cache_when_a_prefill_ends(tmp_path: Path) -> None:
    put("memory", "/data", {"3.bin": b"x" * 5000})
    for number in range(20):
        selection = CacheSelection(cache=tmp_path / str(number), where="memory://data")
        result = prefilled(selection, CacheLimits(), lambda _: None)
        assert result.kept.cached == 1, number
