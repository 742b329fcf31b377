"""Labels of folders, tables and functions; which files are samples."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

import flowos as fo

from .shared import CLASSES, content, make_folder


def label_of(data: Path, labels: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    with fo.Feed(data, batch_size=16, labels=labels) as feed:
        pairs = ((s.indices.tolist(), n.tolist()) for s, n in feed.epoch(0))
        found = {
            feed.name(s): n for some, numbers in pairs for s, n in zip(some, numbers, strict=True)
        }
        return found, feed.classes


def test_labels_come_from_a_table_or_a_function(data: Path, tmp_path: Path) -> None:
    names = make_folder(data)
    table = tmp_path / "labels.csv"
    table.write_text(
        "path,label\n" + "".join(f"./{n},{int(n[4:7])}\n" for n in names) + "gone.jpg,9\n"
    )
    assert label_of(data, table) == ({n: int(n[4:7]) for n in names}, ())
    table.write_text("".join(f'"{n}",{n[:3].upper()}\n' for n in reversed(names)))
    by_name = {n: CLASSES.index(n[:3]) for n in names}
    assert label_of(data, str(table)) == (by_name, ("ANT", "BEE", "CAT", "DOG"))
    assert label_of(data, lambda name: int(name[4:7]) / 2)[0] == {n: int(n[4:7]) / 2 for n in names}
    with fo.Feed(data, batch_size=16, labels=None) as feed:
        assert {labels for _, labels in feed.epoch(0)} == {None}


@pytest.mark.parametrize(
    ("words", "values", "classes"),
    [
        (["7", "-3"], [7, -3], ()),
        (["0.5", "1e2"], [0.5, 100.0], ()),
        ([".5", "3."], [0.5, 3.0], ()),
        (["007", "7"], [0, 1], ("007", "7")),
        (["1_0", "10"], [1, 0], ("10", "1_0")),
        (["+1", "1"], [0, 1], ("+1", "1")),
        (["-0", "0"], [0, 1], ("-0", "0")),
        (["٣", "3"], [1, 0], ("3", "٣")),
        (["nan", "inf"], [1, 0], ("inf", "nan")),
    ],
)
def test_words_of_a_table_are_numbers_or_names_and_no_two_become_one(
    tmp_path: Path, words: list[str], values: list[float], classes: tuple[str, ...]
) -> None:
    write(tmp_path / "data", "a", "b")
    table = tmp_path / "labels.csv"
    table.write_text(f"a,{words[0]}\nb,{words[1]}\n")
    assert label_of(tmp_path / "data", table) == (dict(zip("ab", values, strict=True)), classes)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nan", "a has the label nan, others have numbers: write a finite number"),
        ("-Infinity", "a has the label -Infinity, others have"),
        ("1.0e999", "a has the label 1.0e999, others have"),
        ("9" * 5000, "does not fit into 64 bits"),
    ],
)
def test_a_number_that_is_none_among_numbers_is_refused(
    tmp_path: Path, word: str, said: str
) -> None:
    write(tmp_path / "data", "a", "b")
    (tmp_path / "labels.csv").write_text(f"a,{word}\nb,7\n")
    with pytest.raises(fo.FeedError, match=said):
        fo.Feed(tmp_path / "data", batch_size=1, labels=tmp_path / "labels.csv")


def test_a_missing_label_is_one_line_that_names_the_sample(data: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("".join(f"{n},1\n" for n in make_folder(data)[2:]))
    with pytest.raises(fo.FeedError, match=r"csv: no row for ant/000.jpg and 1 more samples"):
        fo.Feed(data, batch_size=8, labels=table)
    table.write_text("ant/000.jpg,1\nant/000.jpg,2\n")
    with pytest.raises(fo.FeedError, match=r"line 2: ant/000\.jpg is 2, but 1 further up"):
        fo.Feed(data, batch_size=8, labels=table)
    with pytest.raises(fo.FeedError, match=r"nosuch\.csv: No such file"):
        fo.Feed(data, batch_size=8, labels="nosuch.csv")
    with pytest.raises(fo.FeedError, match=r"ZeroDivisionError.*ant/000.jpg"):
        fo.Feed(data, batch_size=8, labels=lambda _: 1 // 0)


def test_a_flat_folder_has_no_classes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(content(name))
    with fo.Feed(tmp_path, batch_size=2) as feed:
        assert feed.classes == ()
        ((samples, labels),) = feed.epoch(0)
        assert (len(samples), labels) == (2, None)
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "c").touch()
    with pytest.raises(fo.FeedError, match="a is in no class, others are"):
        fo.Feed(tmp_path, batch_size=2)


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content(name))


def written_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def test_a_class_is_a_folder_of_the_root_with_all_below_it(tmp_path: Path) -> None:
    names = ["b/2019/1", "b/2020/x/2", "b/3", "a-b/4", "a/deep/5"]
    write(tmp_path, *names)
    labels, classes = label_of(tmp_path, "folders")
    assert classes == ("a", "a-b", "b")
    assert labels == {name: classes.index(name.split("/")[0]) for name in names}


def test_a_class_without_samples_is_refused_before_it_shifts_the_others(tmp_path: Path) -> None:
    write(tmp_path, "ant/1", "cat/1")
    (tmp_path / "bee" / "deep").mkdir(parents=True)
    with pytest.raises(fo.FeedError, match=r"the folder 'bee' has no sample.*classes="):
        fo.Feed(tmp_path, batch_size=1)
    with fo.Feed(tmp_path, batch_size=2, classes=["ant", "bee", "cat"]) as feed:
        ((samples, labels),) = feed.epoch(0)
        found = {feed.name(s): int(n) for s, n in zip(samples.indices, labels, strict=True)}
        assert (found, feed.classes) == ({"ant/1": 0, "cat/1": 2}, ("ant", "bee", "cat"))
    with fo.Feed(tmp_path, batch_size=2, labels=None) as feed:
        assert feed.classes == ()


def test_a_validation_set_is_numbered_as_the_training_set_is(tmp_path: Path) -> None:
    write(tmp_path / "train", "ant/1", "bee/1", "cat/1")
    write(tmp_path / "val", "cat/1")
    write(tmp_path / "other", "dog/1")
    with fo.Feed(tmp_path / "train", batch_size=1) as train:
        with fo.Feed(tmp_path / "val", batch_size=1, classes=train) as val:
            ((_, labels),) = val.epoch(0)
            assert (labels.tolist(), val.classes) == ([2], train.classes)
        with pytest.raises(fo.FeedError, match=r"the class 'dog' is none of the 3 of classes="):
            fo.Feed(tmp_path / "other", batch_size=1, classes=train)
        with pytest.raises(fo.FeedError, match="labels=None"):
            fo.Feed(tmp_path / "val", batch_size=1, classes=train, labels=None)
    table = tmp_path / "labels.csv"
    table.write_text("cat/1,zebra\n")
    with fo.Feed(tmp_path / "val", batch_size=1, labels=table, classes=["yak", "zebra"]) as val:
        assert next(val.epoch(0))[1].tolist() == [1]


@pytest.mark.parametrize("classes", ["ant", 7, [], ["a", 1], ["a", "b", "a"], {"a": 0}])
def test_what_are_no_names_of_classes_is_one_line(data: Path, classes: Any) -> None:
    with pytest.raises(fo.FeedError, match=r"classes=") as refused:
        fo.Feed(data, batch_size=1, classes=classes)
    assert "\n" not in str(refused.value)


def test_numbers_get_the_names_that_are_given_and_none_beyond_them(tmp_path: Path) -> None:
    shard = tmp_path / "0.tar"
    written_tar(shard, {"1.jpg": b"x", "1.cls": b"1", "2.jpg": b"y", "2.cls": b"0"})
    with fo.Feed(shard, batch_size=2, shuffle=False, classes=["no", "yes"]) as feed:
        assert [feed.classes[n] for n in next(feed.epoch(0))[1]] == ["yes", "no"]
    with pytest.raises(fo.FeedError, match="1 is none of the 1 classes, which count from 0"):
        fo.Feed(shard, batch_size=2, classes=["only"])


def test_class_members_of_shards_may_be_names_or_any_numbers(tmp_path: Path) -> None:
    shard = tmp_path / "0.tar"
    for said, expected, classes in (
        ((b"dog", b"cat\n"), [1, 0], ("cat", "dog")),
        ((b"1", b"-1"), [1, -1], ()),
    ):
        written_tar(shard, {"1.jpg": b"x", "1.cls": said[0], "2.jpg": b"y", "2.cls": said[1]})
        with fo.Feed(shard, tmp_path / "cache", batch_size=2, shuffle=False) as feed:
            assert (next(feed.epoch(0))[1].tolist(), feed.classes) == (expected, classes)
        with fo.Feed(shard, tmp_path / "cache", batch_size=2, shuffle=False) as feed:  # as kept
            assert (next(feed.epoch(0))[1].tolist(), feed.classes) == (expected, classes)


@pytest.mark.parametrize("said", [b"", b"\x80\x04K\x07.\0", b"x" * 2000, b"0.5"])
def test_a_class_member_that_says_nothing_is_refused_and_not_none(
    tmp_path: Path, said: bytes
) -> None:
    written_tar(tmp_path / "0.tar", {"1.jpg": b"x", "1.cls": said})
    with pytest.raises(fo.FeedError, match=r"\.cls .*labels=None"):
        fo.Feed(tmp_path, batch_size=1)
    with fo.Feed(tmp_path, batch_size=1, labels=None) as feed:
        assert next(feed.epoch(0))[1] is None


def test_texts_of_a_table_are_classes_with_names(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [b"1", b"2"], "kind": ["dog", "cat"]}), file)
    how: dict[str, Any] = {"column": "x", "label_column": "kind", "shuffle": False}
    with fo.Feed(file, batch_size=2, **how) as feed:
        assert (next(feed.epoch(0))[1].tolist(), feed.classes) == ([1, 0], ("cat", "dog"))
    with fo.Feed(file, batch_size=2, classes=("ant", "cat", "dog"), **how) as feed:
        assert next(feed.epoch(0))[1].tolist() == [2, 1]


def test_the_folder_above_a_data_set_is_asked_about(tmp_path: Path) -> None:
    write(tmp_path, "train/ant/1", "val/ant/1")
    with pytest.warns(UserWarning, match="the classes are train, val: is the data set one of"):
        fo.Feed(tmp_path, batch_size=1).close()


@pytest.mark.parametrize(
    ("stray", "names", "remedy"),
    [
        ("notes.pdf", ["0.tar", "1.tar"], r"given as .*/\*\.tar"),
        ("0.tar.gz", ["1.tar.gz"], r"unpack them to \.tar"),
        ("a.TGZ", ["b/c/1.jpg"], r"unpack them to \.tar"),
        ("train/0.tar", ["train/1.tar"], r"given as .*/\*\.tar"),
        ("stray", ["0.parquet"], "column="),
    ],
)
def test_shards_among_files_are_refused_and_no_samples(
    tmp_path: Path, stray: str, names: list[str], remedy: str
) -> None:
    write(tmp_path, stray, *names)
    for decode in (None, fo.decode.jpeg(32)):
        with pytest.raises(fo.FeedError, match=remedy) as refused:
            fo.Feed(tmp_path, batch_size=1, labels=None, decode=decode)
        assert "\n" not in str(refused.value)
    with fo.Feed(tmp_path, batch_size=1, labels=None, extensions="all") as feed:
        assert feed.samples == 1 + len(names)


def test_files_that_a_decoder_does_not_know_are_left_out_and_told(tmp_path: Path) -> None:
    write(tmp_path, "a/1.jpg", "a/2.PNG", "a/Thumbs.db", "Thumbs.db")
    with pytest.warns(UserWarning, match=r"2 of 4 files are no samples.*Thumbs\.db.*extensions="):
        feed = fo.Feed(tmp_path, batch_size=1, decode=fo.decode.jpeg(32))
    with feed:
        assert (feed.samples, feed.classes) == (2, ("a",))
    with fo.Feed(tmp_path, batch_size=1, decode=fo.decode.jpeg(8), extensions=[".JPG"]) as feed:
        assert [feed.name(0), feed.samples] == ["a/1.jpg", 1]
    with fo.Feed(tmp_path, batch_size=1, labels=None) as feed:
        assert feed.samples == 4
    with pytest.raises(fo.FeedError, match="none of 4 files is a sample by the ending"):
        fo.Feed(tmp_path, batch_size=1, extensions=["webp"])
    for wrong in ("jpg", [], [""], 7, b"jpg", [1]):
        with pytest.raises(fo.FeedError, match=r"extensions=.*expected endings"):
            fo.Feed(tmp_path, batch_size=1, extensions=wrong)  # type: ignore[arg-type]


def test_what_was_cached_without_a_decoder_serves_one(data: Path, cache: Path) -> None:
    with fo.Feed(data, cache, batch_size=50) as feed:
        list(feed.epoch(0))
    with fo.Feed(data, cache, batch_size=50, extensions="pictures") as feed:
        list(feed.epoch(0))
        assert feed.stats().source_bytes == 0


def test_a_cache_of_another_source_is_not_taken_for_data(data: Path, tmp_path: Path) -> None:
    make_folder(tmp_path / "other", each=2)
    with fo.Feed(tmp_path / "other", data / "cache", batch_size=2) as feed:
        list(feed.epoch(0))
    for cache in (None, tmp_path / "mine"):
        with pytest.raises(fo.FeedError, match=r"cache/[0-9a-f]{32} in it is a cache of samples"):
            fo.Feed(data, cache, batch_size=2)


@pytest.mark.parametrize("labels", [[1, 2], True, 7])
def test_what_are_no_labels_is_one_line(data: Path, labels: Any) -> None:
    with pytest.raises(fo.FeedError, match="expected 'folders', a CSV file, a function"):
        fo.Feed(data, batch_size=1, labels=labels)
