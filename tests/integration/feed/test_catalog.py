"""Catalogs and files as Python sees them, compared with Python's own modules."""

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flowos._native import Catalog, Counter, Files
from flowos.model import FeedError, SampleError

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "/".join(["a folder with a long name" * 3] * 3)


def age(path: Path, seconds: float = 100.0) -> None:
    then = time.time() - seconds
    for place in (path, *path.rglob("*")):
        os.utime(place, (then, then))


def names_of(catalog: Catalog) -> list[str]:
    return [catalog.name(sample) for sample in range(len(catalog))]


def labels_of(catalog: Catalog) -> list[int | None]:
    labels = catalog.labels()
    assert labels is not None
    return [None if label == Catalog.NO_LABEL else label for label in labels.tolist()]


def contents_of(root: Path, catalog: Catalog) -> list[bytes]:
    files = Files(root, catalog)
    return [files.read(sample) for sample in range(len(catalog))]


def written_tar(path: Path, members: dict[str, bytes], form: int) -> None:
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cat/1", "cat/2", "dog/1", "dog/puppies/1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    age(tmp_path)
    return tmp_path


def test_a_folder_lists_its_files_with_groups_and_folders(folder: Path) -> None:
    found = Counter()
    catalog = Catalog.list_folder(str(folder), 4, found)
    assert names_of(catalog) == ["cat/1", "cat/2", "dog/1", "dog/puppies/1"]
    assert (len(catalog), found.value) == (4, 4)
    assert catalog.groups() == ["cat", "dog", "dog/puppies"]
    assert catalog.group_of().tolist() == [0, 0, 1, 2]
    (folder / "empty" / "below").mkdir(parents=True)
    folders = Catalog.list_folder(folder).folders()
    assert sorted(folders) == ["", "cat", "dog", "dog/puppies", "empty", "empty/below"]
    assert (catalog.kind, catalog.labels(), catalog.classes()) == ("folder", None, [])
    assert catalog.sizes().tolist() == [-1] * 4
    assert contents_of(folder, catalog) == [name.encode() for name in names_of(catalog)]


def test_names_that_are_no_utf8_are_as_pythons(folder: Path) -> None:
    strange = folder / os.fsdecode(b"cat/\xff\x01")
    (folder / "cat/1").rename(strange)
    catalog = Catalog.list_folder(folder)
    assert set(names_of(catalog)) == {
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()
    }
    back = Catalog.parse(catalog.serialized())
    assert back is not None
    assert names_of(back) == names_of(catalog)
    strange.unlink()
    with pytest.raises(SampleError, match=r"cat/\\xff\\x01: No such file or directory; it was"):
        contents_of(folder, catalog)


def test_a_kept_catalog_holds_until_something_comes_or_goes(folder: Path) -> None:
    catalog = Catalog.list_folder(folder)
    kept = Catalog.parse(catalog.serialized())
    assert kept is not None
    assert (kept.fingerprint(), kept.cache_key()) == (catalog.fingerprint(), catalog.cache_key())
    assert kept.still_holds(str(folder))
    (folder / "dog/puppies/2").write_bytes(b"new")
    assert not kept.still_holds(str(folder))
    assert Catalog.list_folder(folder).fingerprint() != kept.fingerprint()


def test_bytes_of_something_else_are_no_catalog(folder: Path) -> None:
    data = Catalog.list_folder(folder).serialized()
    assert Catalog.parse(b"") is None
    assert Catalog.parse(data[:-1]) is None
    assert Catalog.parse(data.replace(b"puppies", b"guppies")) is None


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_tars_of_all_formats_are_read_as_tarfile_reads_them(tmp_path: Path, form: int) -> None:
    long = LONG[:200] if form == tarfile.USTAR_FORMAT else LONG
    members = {
        "plain/0001.jpg": b"first" * 1000,
        "plain/0001.cls": b"17",
        f"{long}/0002.jpg": b"second",
        f"{long}/0002.json": b"{}",
        "b/ä.png": b"third",
    }
    written_tar(tmp_path / "s-0.tar", members, form)
    written_tar(tmp_path / "s-1.tar", {"only.webp": b""}, form)
    found = Counter()
    catalog = Catalog.list_tars(tmp_path, ["s-0.tar", "s-1.tar"], found=found)
    assert names_of(catalog) == [
        "s-0.tar:plain/0001",
        f"s-0.tar:{long}/0002",
        "s-0.tar:b/ä",
        "s-1.tar:only",
    ]
    assert contents_of(tmp_path, catalog) == [b"first" * 1000, b"second", b"third", b""]
    assert labels_of(catalog) == [17, None, None, None]
    assert found.value == 4
    with tarfile.open(tmp_path / "s-0.tar") as archive:
        images = [i for i in archive if i.name.endswith(("jpg", "png"))]
    assert catalog.offsets().tolist()[:3] == [i.offset_data for i in images]
    assert catalog.sizes().tolist()[:3] == [i.size for i in images]


def test_arrays_are_cut_into_records(tmp_path: Path) -> None:
    tokens = np.arange(1000, dtype=np.uint16)
    np.save(tmp_path / "a.npy", tokens)
    tokens.tofile(tmp_path / "b.bin")
    catalog = Catalog.list_arrays(tmp_path, ["a.npy"], 128, 64)
    assert len(catalog) == 31
    assert catalog.name(30) == "a.npy[30]"
    assert b"".join(contents_of(tmp_path, catalog)) == tokens[: 31 * 32].tobytes()
    with pytest.raises(FeedError, match="none holds 4096 bytes"):
        Catalog.list_arrays(tmp_path, ["b.bin"], 0, 4096)


def test_what_others_have_listed_becomes_a_catalog() -> None:
    catalog = Catalog(["a", "b"], ["a/x", "b/y", "b/\udcff"], [0, 1, 1], [5, -1, 7])
    assert names_of(catalog) == ["a/x", "b/y", "b/\udcff"]
    assert (catalog.kind, catalog.labels()) == ("named", None)
    assert catalog.sizes().tolist() == [5, -1, 7]
    assert not catalog.still_holds("/")  # nothing is known that could be looked at
    labels = [1, Catalog.NO_LABEL]
    given = Catalog(["a"], ["a/x", "a/y"], [0, 0], [5, 5], labels, classes=["b", "c"])
    back = Catalog.parse(given.serialized())
    assert back is not None
    assert (labels_of(back), back.classes()) == ([1, None], ["b", "c"])
    shards = Catalog(["s.tar"], ["x", "y"], [0, 0], [5, 6], [3, -1], [512, 2048])
    assert (shards.kind, labels_of(shards)) == ("tars", [3, -1])
    assert names_of(shards) == ["s.tar:x", "s.tar:y"]
    assert shards.offsets().tolist() == [512, 2048]
    array = np.zeros(3, dtype=np.int64)
    assert len(Catalog(["a"], ["x", "y", "z"], array, array.tolist())) == 3  # type: ignore[arg-type]


Column = list[int]


@pytest.mark.parametrize(
    ("group_of", "sizes", "labels", "offsets"),
    [
        ([0], [1, 1], None, None),
        ([0, 0], [1], None, None),
        ([0, 0], [1, 1], [1], None),
        ([0, 0], [1, 1], None, [1]),
        ([0, 1], [1, 1], None, None),
        ([0, -1], [1, 1], None, None),
        ([0, 1 << 32], [1, 1], None, None),
        ([0, 0], [1, -2], None, None),
        ([0, 0], [1, -1], None, [0, 0]),
        ([0, 0], [1, 1], None, [0, -1]),
    ],
)
def test_what_does_not_fit_together_is_refused(
    group_of: Column, sizes: Column, labels: Column | None, offsets: Column | None
) -> None:
    with pytest.raises(ValueError, match="Catalog: "):
        Catalog(["a"], ["x", "y"], group_of, sizes, labels, offsets)
    with pytest.raises(ValueError, match="labels count classes"):
        Catalog(["a"], ["x", "y"], [0, 0], [1, 1], [0, 1], classes=["one"])


def test_a_catalog_of_some_is_as_if_the_others_were_not_there(folder: Path) -> None:
    before = Catalog.list_folder(folder)
    for stray in ("cat/Thumbs.db", "dog/1.JPG", "dog/jpg"):
        (folder / stray).touch()
    every = Catalog.list_folder(folder)
    are_strays = every.ends_in(["db", "jpg"])
    assert [name for name, is_one in zip(names_of(every), are_strays, strict=True) if is_one] == [
        "cat/Thumbs.db",
        "dog/1.JPG",
    ]
    (folder / "dog/jpg").unlink()
    some = every.only(~every.ends_in(["db", "jpg"]) & (np.array(names_of(every)) != "dog/jpg"))
    assert names_of(some) == names_of(before)
    assert some.cache_key() == before.cache_key()
    with pytest.raises(ValueError, match="one for each sample"):
        every.only(np.array([True]))


def test_a_sample_beyond_the_last_is_an_index_error(folder: Path) -> None:
    catalog = Catalog.list_folder(folder)
    with pytest.raises(IndexError):
        catalog.name(len(catalog))
    with pytest.raises(IndexError):
        Files(folder, catalog).read(len(catalog))


def test_columns_outlive_their_catalog(folder: Path) -> None:
    columns = Catalog.list_folder(folder).group_of()
    assert columns.dtype == np.int64
    assert columns.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("listing", "line"),
    [
        (lambda root: Catalog.list_folder(root / "none"), "none: No such file or directory"),
        (lambda root: Catalog.list_folder(root / "cat/1"), "cat/1 is no folder"),
        (lambda root: Catalog.list_tars(root, ["cat/1"]), "cat/1 is no tar archive"),
        (lambda root: Catalog.list_tars(root, ["none.tar"]), "none.tar: No such file"),
        (lambda root: Catalog.list_arrays(root, ["none"], 0, 1), "none: No such file"),
        (lambda root: Files(root / "none", Catalog.list_folder(root)), "none: No such file"),
    ],
)
def test_what_cannot_be_listed_is_told_in_one_line(
    folder: Path, listing: Callable[[Path], object], line: str
) -> None:
    with pytest.raises(FeedError, match=line) as told:
        listing(folder)
    assert "\n" not in str(told.value)


def test_a_stopped_listing_ends(folder: Path) -> None:
    found = Counter()
    found.stop()
    with pytest.raises(FeedError, match="was stopped"):
        Catalog.list_folder(folder, found=found)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Folders that lead to each other: so many ways through them that no listing ends."""
    names = [f"f{i}" for i in range(12)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        for other in names:
            (tmp_path / name / other).symlink_to(tmp_path / other)
    return tmp_path


LISTING = """
import sys, threading
from flowos._native import Catalog, Counter
found = Counter()
def tell():
    while found.value == 0:
        pass
    print("begun", flush=True)
threading.Thread(target=tell).start()
try:
    Catalog.list_folder(sys.argv[1], found=found)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_listing(endless: Path) -> None:
    command = [sys.executable, "-c", LISTING, str(endless)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=300)[0] == "interrupted\n"
        finally:
            process.kill()
