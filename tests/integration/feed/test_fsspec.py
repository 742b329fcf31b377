"""Files of other protocols: memory and file by fsspec itself, and one that fails on purpose."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from flowos.feeder._remote import open_url
from flowos.model import FeedError, SampleError

from .object_store import fed, served, tar_of

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


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "2")
    fsspec.register_implementation("flaky", Flaky, clobber=True)
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
