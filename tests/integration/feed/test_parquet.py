"""Rows of Parquet files, here and elsewhere."""

import logging
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowos._native import Cache
from flowos.feeder._arrow_rows import Rows
from flowos.feeder._parquet import ParquetSource
from flowos.model import FeedError, SampleError

from .object_store import ObjectStore, fed, served, set_variables

ROWS = 100


def content(row: int) -> bytes:
    return b"%d " % row * (row % 13)


def write(path: Path, rows: range, group_rows: int = 10, **columns: Any) -> Path:
    """Two columns, or those that are given, as they come."""
    given = columns or {
        "image": [content(row) for row in rows],
        "label": [row % 7 for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(given), path, row_group_size=group_rows)
    return path


def column(path: Path, values: Any) -> Path:
    return write(path, range(0), 4, x=values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A hundred rows in three files."""
    write(tmp_path / "data/a.parquet", range(30))
    write(tmp_path / "data/b.parquet", range(30, 95), 25)
    write(tmp_path / "data/sub/c.parquet", range(95, ROWS), 1)
    return tmp_path / "data"


@pytest.fixture
def read_groups(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, int]]:
    """How often each row group was read: by rows of its file, and number in it."""
    read: Counter[tuple[int, int]] = Counter()
    read_row_group = pq.ParquetFile.read_row_group

    def noted(file: Any, number: int, **how: Any) -> Any:
        read[file.metadata.num_rows, number] += 1
        return read_row_group(file, number, **how)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    return read


def names() -> list[str]:
    return [
        *(f"a.parquet[{row}]" for row in range(30)),
        *(f"b.parquet[{row}]" for row in range(65)),
        *(f"sub/c.parquet[{row}]" for row in range(5)),
    ]


def test_every_row_is_a_sample(folder: Path) -> None:
    source = ParquetSource(folder, label_column="label")
    catalog = source.catalog()
    assert [catalog.name(row) for row in range(len(catalog))] == names()
    labels = catalog.labels()
    assert labels is not None
    assert labels.tolist() == [row % 7 for row in range(ROWS)]
    assert catalog.groups() == ["a.parquet", "b.parquet", "sub/c.parquet"]
    assert fed(source, epochs=3) == {name: content(row) for row, name in enumerate(names())}


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array(["", "größe", "x"]), [b"", "größe".encode(), b"x"]),
        (pa.array([b"1", b"22"], pa.large_binary()), [b"1", b"22"]),
        (pa.array([b"abc", b"def"], pa.binary(3)), [b"abc", b"def"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), [b"a", b"b", b"a"]),
        (pa.array(["v", "w"], pa.string_view()), [b"v", b"w"]),
        (pa.array([[1, 2], [], [3]], pa.list_(pa.int16())), ["2h 1 2", "0h", "1h 3"]),
        (pa.array([[0.5], [1.5]], pa.large_list(pa.float64())), ["1d 0.5", "1d 1.5"]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)), [b"\1\2", b"\3\4"]),
        (pa.chunked_array([[b"one"], [], [b"two", b"three"]]), [b"one", b"two", b"three"]),
    ],
)
def test_bytes_texts_and_lists_of_numbers_are_samples(
    tmp_path: Path, values: Any, wanted: list[bytes | str]
) -> None:
    def plain(value: bytes | str) -> bytes:
        if isinstance(value, bytes):
            return value
        kind, *numbers = value.split()
        return struct.pack(f"={kind}", *(float(n) if kind[-1] == "d" else int(n) for n in numbers))

    got = fed(ParquetSource(column(tmp_path / "x.parquet", values)))
    assert got == {f"x.parquet[{row}]": plain(value) for row, value in enumerate(wanted)}


def test_what_is_inside_of_a_struct_is_named_with_dots(tmp_path: Path) -> None:
    images = pa.array([{"bytes": content(row), "path": f"{row}.png"} for row in range(9)])
    path = column(tmp_path / "x.parquet", images)
    assert list(fed(ParquetSource(path, column="x.bytes"), shuffle=False).values()) == [
        content(row) for row in range(9)
    ]
    with pytest.raises(FeedError, match=r"say which column is the sample: .*x\.bytes.*x\.path"):
        ParquetSource(path).catalog()


def test_texts_as_labels_are_numbered_in_byte_order(tmp_path: Path) -> None:
    kinds = ["cat", "Ant", "bee", "cat"]
    path = write(tmp_path / "x.parquet", range(0), x=[b"1"] * 4, kind=kinds)
    source = ParquetSource(path, column="x", label_column="kind")
    catalog = source.catalog()
    labels = catalog.labels()
    assert labels is not None
    assert ([catalog.classes()[label] for label in labels], labels.tolist()) == (
        kinds,
        [2, 0, 1, 2],
    )


def test_with_a_cache_a_row_group_is_read_no_more_than_it_takes_to_fill_it(
    tmp_path: Path, read_groups: Counter[tuple[int, int]]
) -> None:
    groups, each = 40, 50
    values = [content(row) for row in range(groups * each)]
    path = write(tmp_path / "x.parquet", range(0), each, x=values)
    # Memory for what is asked for at a time, not for the whole column.
    source = ParquetSource(path, memory_bytes=sum(map(len, values)) // 2)
    cache = Cache(str(tmp_path / "cache"), 1, len(values))
    got = fed(source, cache, epochs=4)
    assert list(got) != sorted(got)
    assert got == {f"x.parquet[{row}]": value for row, value in enumerate(values)}
    assert len(read_groups) == groups
    assert read_groups.total() <= 2 * groups
    assert Cache.state_of(str(tmp_path / "cache")).cached == len(values)


def test_each_row_group_is_read_once_where_there_is_memory(
    folder: Path, read_groups: Counter[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    fed(ParquetSource(folder), epochs=4)
    assert set(read_groups.values()) == {1}
    assert not caplog.records


def test_what_random_rows_cost_without_either_is_said_once(
    folder: Path, read_groups: Counter[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "flowos.feed"):
        fed(ParquetSource(folder, memory_bytes=0), epochs=4)
    assert max(read_groups.values()) > 1
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "give the feed a larger cache, or write row groups of a hundred rows" in told[0]


def test_rows_that_are_wanted_together_share_one_reading(
    folder: Path, read_groups: Counter[tuple[int, int]]
) -> None:
    came = served(ParquetSource(folder, memory_bytes=0))
    assert len(came.pushed) == ROWS
    assert set(read_groups.values()) == {1}


def test_a_null_is_a_sample_that_cannot_be_had(tmp_path: Path) -> None:
    path = column(tmp_path / "x.parquet", pa.array([b"1", None, b"3"]))
    came = served(ParquetSource(path))
    assert came.failed == {1: "it is null"}
    assert came.pushed == {0: b"1", 2: b"3"}
    with pytest.raises(SampleError, match=r"^x\.parquet\[1\]: it is null$"):
        fed(ParquetSource(path))
    lists = column(tmp_path / "y.parquet", pa.array([[1], [None]], pa.list_(pa.int32())))
    assert set(served(ParquetSource(lists)).failed.values()) == {"there are nulls inside its lists"}


@pytest.mark.parametrize("kind", [pa.list_(pa.int8(), 2), pa.list_(pa.int8())])
def test_a_null_among_lists_is_one_sample_that_cannot_be_had(tmp_path: Path, kind: Any) -> None:
    path = column(tmp_path / "x.parquet", pa.array([[1, 2], None, [5, 6]], kind))
    came = served(ParquetSource(path))
    assert came.failed == {1: "it is null"}
    assert came.pushed == {0: b"\1\2", 2: b"\5\6"}


def mixed(root: Path, **columns: tuple[Any, Any]) -> Path:
    """Two files, of one row each, and one without rows, whose types are no matter."""
    for at, name in enumerate("bc"):
        write(root / f"{name}.parquet", range(0), **{key: two[at] for key, two in columns.items()})
    write(root / "a.parquet", range(0), x=pa.array([], pa.null()))
    return root


F4, F8 = (pa.array([[0.5]], pa.list_(kind)) for kind in (pa.float32(), pa.float64()))
TEXT = pa.array(["one"])


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"x": (F4, F8)}, r"c\.parquet: column x is list<.*double>, but list<.*float> in b\.parq"),
        (
            {"x": (TEXT, F8)},
            r"c\.parquet: column x is list<.*, but string in b\.parquet: write all",
        ),
        ({"x": (TEXT, pa.array([1]))}, r"c\.parquet: column x is int64, but string in b\.parquet"),
        (
            {"x": (TEXT, TEXT), "l": (pa.array([1]), TEXT)},
            r"labels in l are texts in c\.parquet, whole numbers in b\.parquet: write all",
        ),
        (
            {"x": (TEXT, TEXT), "l": (pa.array([1]), pa.array([2**64 - 1], pa.uint64()))},
            r"c\.parquet: the label 18446744073709551615 in l is out of range",
        ),
        (
            {"x": (TEXT, TEXT), "l": (pa.array([-(2**63)]), pa.array([1]))},
            r"b\.parquet: the label -9223372036854775808 in l is out of range",
        ),
    ],
)
def test_files_that_do_not_go_together_are_told_when_they_are_listed(
    tmp_path: Path, columns: dict[str, tuple[Any, Any]], why: str
) -> None:
    asked: Any = {"label_column": "l"} if "l" in columns else {}
    with pytest.raises(FeedError, match=why):
        ParquetSource(mixed(tmp_path, **columns), **asked).catalog()


def test_a_file_without_the_column_is_told_when_it_is_listed(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", range(0), x=TEXT)
    write(tmp_path / "b.parquet", range(0), y=TEXT)
    with pytest.raises(FeedError, match=r"b\.parquet: no column x; there are \['y'\]"):
        ParquetSource(tmp_path, column="x").catalog()


def test_types_of_the_same_bytes_and_any_whole_numbers_go_together(tmp_path: Path) -> None:
    wide = pa.array(["two"], pa.large_string())
    source = ParquetSource(
        mixed(tmp_path, x=(TEXT, wide), l=(pa.array([1], pa.int32()), pa.array([2], pa.uint64()))),
        label_column="l",
    )
    labels = source.catalog().labels()
    assert labels is not None
    assert labels.tolist() == [1, 2]
    assert list(fed(source, shuffle=False).values()) == [b"one", b"two"]


def test_a_file_that_was_written_anew_is_not_mixed_with_what_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", range(20))
    catalog = ParquetSource(path).catalog()
    identity = ParquetSource(path).identity()
    write(path, range(10))
    source = ParquetSource(path)
    assert source.identity() != identity

    class Kept:
        name = source.name

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def catalog(self, found: Any = None) -> Any:  # noqa: ARG002 - as it is called
            return catalog

    came = served(Kept(), [3, 15])
    assert came.failed == {15: "the file has changed since it was indexed: index it anew"}


def test_files_in_a_bucket_and_in_memory_are_read_by_ranges(
    folder: Path, server: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, server.url)
    files = {
        f"t/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*.parquet")
    }
    server.bucket("tables", {**files, "t/README.md": b"not one of them"})
    fsspec.filesystem("memory").pipe({f"/tables/{name}": data for name, data in files.items()})
    wanted = {name: content(row) for row, name in enumerate(names())}
    assert fed(ParquetSource("s3://tables/t", column="image", label_column="label")) == wanted
    assert fed(ParquetSource("memory://tables/t")) == wanted
    assert len(fed(ParquetSource("s3://tables/t/{a,b}.parquet"))) == 95
    with pytest.raises(FeedError, match=r"^s3://tables/u: no \.parquet files are there$"):
        ParquetSource("s3://tables/u").catalog()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"column": "picture"}, r"no column picture; there are \['image', 'label'\]"),
        ({"column": "label"}, r"column label is int64, one of \['image'\] can be read"),
        ({"label_column": "kind"}, r"a\.parquet: no column kind; there are"),
        ({"label_column": "image"}, "labels are whole numbers or texts, image is not"),
    ],
)
def test_a_column_that_does_not_fit_is_told(folder: Path, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(FeedError, match=why):
        ParquetSource(folder, **asked).catalog()


def test_one_file_is_called_as_it_was_given(folder: Path) -> None:
    with pytest.raises(FeedError, match=rf"^{folder}/a\.parquet: no column kind"):
        ParquetSource(folder / "a.parquet", label_column="kind").catalog()


def test_labels_that_are_null_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", range(0), x=[b"1", b"2"], label=[1, None])
    with pytest.raises(FeedError, match="1 labels in label are null"):
        ParquetSource(path, column="x", label_column="label").catalog()


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()]
)
def test_labels_are_texts_however_they_are_kept(tmp_path: Path, kind: Any) -> None:
    """As pandas keeps what it calls categories."""
    label = pa.array(["dog", "cat", "dog"]).cast(kind)
    path = write(tmp_path / "x.parquet", range(0), image=[b"1", b"2", b"3"], label=label)
    catalog = ParquetSource(path, column="image", label_column="label").catalog()
    labels = catalog.labels()
    assert labels is not None
    assert labels.tolist() == [1, 0, 1]
    assert catalog.classes() == ["cat", "dog"]


def test_numbers_that_are_kept_once_are_labels(tmp_path: Path) -> None:
    label = pa.array([70, 3, 70]).dictionary_encode()
    path = write(tmp_path / "x.parquet", range(0), image=[b"1", b"2", b"3"], label=label)
    labels = ParquetSource(path, label_column="label").catalog().labels()
    assert labels is not None
    assert labels.tolist() == [70, 3, 70]


def test_a_table_without_a_sample_in_it_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", range(0), label=[1, 2])
    with pytest.raises(FeedError, match=r"no column can be a sample: .*; there are label \(int64"):
        ParquetSource(path).catalog()


def test_two_columns_of_one_name_are_told(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([b"1"]), pa.array([b"2"])], names=["image", "image"])
    pq.write_table(table, tmp_path / "x.parquet")
    for column in ("", "image"):
        with pytest.raises(FeedError, match=r"x\.parquet: 2 columns are called image: write it"):
            ParquetSource(tmp_path / "x.parquet", column=column).catalog()


def test_what_is_no_parquet_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"no parquet at all, but long enough for a footer")
    with pytest.raises(FeedError, match=r"x\.parquet: ArrowInvalid: .*magic"):
        ParquetSource(tmp_path).catalog()
    with pytest.raises(FeedError, match=r"nowhere: it is not there"):
        ParquetSource(tmp_path / "nowhere")
    with pytest.raises(FeedError, match=r"xxx: it cannot be looked at: File name too long"):
        ParquetSource(tmp_path / ("x" * 300))
    (tmp_path / "x.parquet").unlink()
    (tmp_path / "x.parquet").symlink_to("gone")
    with pytest.raises(FeedError, match=r"x\.parquet: it cannot be read: No such file .*; mend"):
        ParquetSource(tmp_path).identity()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FeedError, match=r"empty: no \.parquet files are there"):
        ParquetSource(tmp_path / "empty").catalog()


def test_a_missing_package_is_told_with_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    line = r"^{} is read by the package pyarrow: pip install pyarrow$"
    with pytest.raises(FeedError, match=line.format(folder)):
        ParquetSource(folder)
    with pytest.raises(FeedError, match=line.format(r"http://host/x\.parquet")):
        ParquetSource("http://me:p@ssword@host/x.parquet")


def test_lists_come_as_arrays_without_a_copy() -> None:
    tokens = pa.chunked_array([pa.array([[1, 2, 3], [4]], pa.list_(pa.uint16())).slice(1)])
    row = Rows(tokens)[0]
    assert np.frombuffer(row, np.uint16).tolist() == [4]
    values = tokens.chunk(0).values.buffers()[1]
    assert np.frombuffer(row, np.uint8).ctypes.data == values.address + 6
