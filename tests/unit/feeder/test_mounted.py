"""From what a person calls the data to where it lies: real files, nothing read yet."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flowos.feeder import SourceOptions
from flowos.feeder._mounted import Mounted, mounted
from flowos.feeder._resolve_source import source_at
from flowos.model import FeedError

NONE = SourceOptions()


def touch(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def at(where: object, asked: SourceOptions = NONE) -> Mounted:
    source, _ = source_at(where, asked)  # type: ignore[arg-type]
    assert isinstance(source, Mounted)
    return source


def test_a_folder_of_files_is_a_folder_of_samples(tmp_path: Path) -> None:
    touch(tmp_path / "cat" / "1.jpg", tmp_path / "README.md")
    assert at(tmp_path).kind == "folder"
    assert at(str(tmp_path)).root == tmp_path


def test_a_folder_of_nothing_but_tars_is_shards(tmp_path: Path) -> None:
    touch(tmp_path / "b.tar", tmp_path / "a.tar", tmp_path / "about.json")
    touch(tmp_path / ".c.tar", tmp_path / ".listing")  # in the making, or of a file browser
    found = at(tmp_path)
    assert (found.kind, found.files) == ("tars", ("a.tar", "b.tar"))
    touch(tmp_path / "stray.jpg")
    assert at(tmp_path).kind == "folder"  # and refused once it is listed


def test_patterns_and_braces_stand_for_shards(tmp_path: Path) -> None:
    touch(*(tmp_path / "x" / f"train-{n:03}.tar" for n in range(4)), tmp_path / "x" / "val-0.tar")
    assert len(at(f"{tmp_path}/x/train-*.tar").files) == 4
    assert at(f"{tmp_path}/x/train-{{001..003}}.tar").files[0] == "train-001.tar"
    some = at([tmp_path / "x" / "train-002.tar", tmp_path / "x" / "val-0.tar"])
    assert some.files == ("train-002.tar", "val-0.tar")


@pytest.mark.parametrize("where", ["nosuch", "nosuch/*.tar", "a-{0..3}.tar"])
def test_what_is_not_there_is_named(tmp_path: Path, where: str) -> None:
    with pytest.raises(FeedError, match=r"there is no .*(nosuch|a-0.tar)"):
        at(f"{tmp_path}/{where}")


@pytest.mark.parametrize("where", ["", [], 7, [""], b"bytes"])
def test_what_is_no_place_is_refused(where: object) -> None:
    with pytest.raises(FeedError, match="expected a path, a URL, or several paths"):
        at(where)


def test_of_many_places_the_one_that_is_none_is_named() -> None:
    with pytest.raises(FeedError, match=r"source=None .* among them"):
        at([*["a.tar"] * 1000, None])
    with pytest.raises(FeedError, match=r"source=.*iterator.* which has no path in it"):
        at(iter(()))


def test_a_mixture_of_files_is_refused(tmp_path: Path) -> None:
    touch(tmp_path / "a.tar", tmp_path / "b.jpg")
    with pytest.raises(FeedError, match="all of one kind"):
        at([tmp_path / "a.tar", tmp_path / "b.jpg"])


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (("cat/0.jpg",), "where each file is a sample, give the folder that they lie in"),
        (("0.tar.gz", "1.tar.gz"), "shards are read as they lie, uncompressed: unpack them"),
        (("cat", "dog"), "of folders give one, or the one that they lie in"),
    ],
)
def test_what_is_no_source_says_what_to_give(
    names: tuple[str, ...], advice: str, tmp_path: Path
) -> None:
    touch(tmp_path / "cat/0.jpg", tmp_path / "dog/0.jpg")
    touch(tmp_path / "0.tar.gz", tmp_path / "1.tar.gz")
    with pytest.raises(FeedError, match=f"all of one kind; {advice}"):
        at([tmp_path / name for name in names])


def test_of_many_files_the_first_two_are_named(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.tar" for number in range(1000)]
    touch(*paths, tmp_path / "b.jpg")
    source, _ = source_at(paths, NONE)
    assert source.name == f"{paths[0]}, {paths[1]} and 998 more"
    assert source_at(paths[:3], NONE)[0].name == ", ".join(map(str, paths[:3]))
    with pytest.raises(FeedError, match=rf"^Feed: {paths[0]}, {paths[1]} and 999 more: expected"):
        at([*paths, tmp_path / "b.jpg"])


def test_a_url_is_given_alone() -> None:
    for places in (["s3://a/0.tar", "s3://a/1.tar"], ["0.tar", "s3://name:secret@a/1.tar"]):
        with pytest.raises(FeedError, match="several URLs, or paths besides") as refused:
            at(places)
        assert "secret" not in str(refused.value)


def test_a_file_url_says_what_to_write() -> None:
    with pytest.raises(FeedError, match="give the path alone: /data"):
        at("file:///data")


def test_token_arrays_are_cut_into_samples_of_length(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(100, dtype=np.uint16))
    found = at(tmp_path / "a.npy", SourceOptions(length=10))
    assert found.kind == "arrays"
    assert found.record
    assert (found.record.dtype, found.record.shape) == (np.dtype("uint16"), (10,))
    assert found.header_bytes == 128


def test_rows_of_an_array_are_samples(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((5, 3, 2), dtype=np.float32))
    record = at(tmp_path / "a.npy").record
    assert record
    assert record.shape == (3, 2)


def test_a_folder_of_bin_files_needs_its_dtype_and_length(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(64))
    (tmp_path / "about.json").touch()
    found = at(tmp_path, SourceOptions(dtype=np.dtype("uint16"), length=8))
    assert found.files == ("a.bin",)
    with pytest.raises(FeedError, match="say what is in it, as dtype="):
        at(tmp_path / "a.bin", SourceOptions(length=8))


@pytest.mark.parametrize(
    ("array", "asked", "said"),
    [
        (np.zeros(9, dtype="u2"), SourceOptions(dtype=np.dtype("u4"), length=3), "holds uint16"),
        (np.zeros(9, dtype="u2"), NONE, "say how long a sample is"),
        (np.asfortranarray(np.zeros((3, 4))), NONE, r"np\.ascontiguousarray"),
        (np.asfortranarray(np.zeros((3, 4))), SourceOptions(length=4), r"np\.ascontiguousarray"),
        (np.zeros(9), SourceOptions(length=2**61), r"a\.npy: a sample of .* give a smaller length"),
        (np.array([{}], dtype=object), SourceOptions(length=1), "holds Python objects"),
    ],
)
def test_an_array_that_cannot_be_cut_is_refused(
    tmp_path: Path,
    array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]",
    asked: SourceOptions,
    said: str,
) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(FeedError, match=said):
        at(tmp_path / "a.npy", asked)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda data: data[:-3],
            r"a\.npy is cut off: 24 bytes are \(3, 4\) of uint16, and 21 foll",
        ),
        (lambda data: data * 2, r"a\.npy has bytes behind its array: 24 bytes .*; write it again"),
    ],
)
@pytest.mark.parametrize("asked", [NONE, SourceOptions(length=2)])
def test_an_array_whose_file_is_of_another_length_is_refused(
    tmp_path: Path, asked: SourceOptions, change: Callable[[bytes], bytes], said: str
) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4), dtype="u2"))
    (tmp_path / "a.npy").write_bytes(change((tmp_path / "a.npy").read_bytes()))
    with pytest.raises(FeedError, match=said):
        at(tmp_path / "a.npy", asked)


NAMED = np.dtype([("\u91cf", "<i4"), ("caf\u00e9\\", "<f8")])


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            lambda data: data[:-3],
            NAMED,
            r"is cut off: 96 bytes .*\u91cf.* 93 follow .*write it again",
        ),
        (lambda data: data[:40], NAMED, r"no \.npy array: ValueError: EOF: reading array header"),
        (lambda data: data[:10], NAMED, r"no \.npy array: ValueError: EOF: reading array header"),
        (lambda data: data, [("\u91cf", object)], "holds Python objects, which are never loaded"),
    ],
)
def test_an_array_with_names_in_utf8_is_refused_as_any_other(
    tmp_path: Path, change: Callable[[bytes], bytes], kind: np.dtype[np.void], said: str
) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 2), kind), allow_pickle=True)
    (tmp_path / "a.npy").write_bytes(change((tmp_path / "a.npy").read_bytes()))
    with pytest.raises(FeedError, match=said):
        at(tmp_path / "a.npy", NONE)


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_names_in_utf8_are_read_however_many_there_are(tmp_path: Path) -> None:
    for kind in (NAMED, np.dtype([("\u91cf" * 300 + str(i), "u1") for i in range(20)])):
        np.save(tmp_path / "a.npy", np.zeros((4, 2), kind))
        record = at(tmp_path / "a.npy", NONE).record
        assert record
        assert record.dtype == kind


def test_an_array_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "a.npy").mkdir()
    with pytest.raises(FeedError, match=r"a\.npy cannot be read: Is a directory"):
        at(tmp_path / "*.npy", NONE)


@pytest.mark.parametrize("length", [2**63, 2**70])
def test_a_length_that_no_file_has_is_refused(tmp_path: Path, length: int) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(64))
    with pytest.raises(FeedError, match="give a smaller length"):
        at(tmp_path / "a.bin", SourceOptions(dtype=np.dtype("u1"), length=length))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("/tmp/" + "x" * 300, "xxx.* cannot be looked at: File name too long"),
        ("a\0b", r"a\\x00b.* is no path"),
        ("a\0b.parquet", r"a\\x00b.* is no path"),
        ("a\0b*", r"a\\x00b.* is no path"),
        ("a\ud800", r"a\\ud800.* is no path"),
        ("loop", "loop cannot be looked at: Too many levels of symbolic links"),
    ],
)
def test_what_cannot_be_a_path_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FeedError, match=said):
        at(where)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is kept from root")
def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path) -> None:
    touch(tmp_path / "shut" / "a" / "1.jpg")
    (tmp_path / "shut").chmod(0o600)
    with pytest.raises(FeedError, match="cannot be looked at: Permission denied"):
        at(tmp_path / "shut" / "a")
    (tmp_path / "shut").chmod(0o700)


def test_an_array_that_is_none_and_arrays_that_differ_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.npy").write_bytes(b"no array at all")
    with pytest.raises(FeedError, match=r"bad\.npy: no \.npy array"):
        at(tmp_path / "bad.npy", SourceOptions(length=2))
    np.save(tmp_path / "a.npy", np.zeros(8, dtype="u2"))
    np.save(tmp_path / "b.npy", np.zeros(8, dtype="u4"))
    with pytest.raises(FeedError, match=r"a\.npy and .*b\.npy differ"):
        at([tmp_path / "a.npy", tmp_path / "b.npy"], SourceOptions(length=2))


def test_sources_with_other_samples_have_other_keys(tmp_path: Path) -> None:
    touch(tmp_path / "t" / "a.tar", tmp_path / "t" / "b.tar", tmp_path / "f" / "1.jpg")
    places: list[object] = [tmp_path / "t", tmp_path / "t" / "a.tar", tmp_path / "f"]
    keys = [source_at(where, NONE)[1] for where in places]  # type: ignore[arg-type]
    keys.append(source_at(tmp_path / "t", SourceOptions(member="jpg"))[1])
    assert len(set(keys)) == len(keys)
    os.symlink(tmp_path / "f", tmp_path / "link")  # noqa: PTH211
    assert source_at(tmp_path / "link", NONE)[1] == keys[2]


def test_a_root_of_shards_in_several_folders_is_their_common_one(tmp_path: Path) -> None:
    touch(tmp_path / "x" / "1.tar", tmp_path / "y" / "2.tar")
    found = mounted([f"{tmp_path}/*/*.tar"], NONE)
    assert (found.root, found.files) == (tmp_path, ("x/1.tar", "y/2.tar"))
