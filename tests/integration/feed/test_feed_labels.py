"""Labels of folders, tables and functions."""

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
    table.write_text("path,label\n" + "".join(f"./{n},{n[4:7]}\n" for n in names) + "gone.jpg,9\n")
    assert label_of(data, table) == ({n: int(n[4:7]) for n in names}, ())
    table.write_text("".join(f'"{n}",{n[:3].upper()}\n' for n in reversed(names)))
    by_name = {n: CLASSES.index(n[:3]) for n in names}
    assert label_of(data, str(table)) == (by_name, ("ANT", "BEE", "CAT", "DOG"))
    assert label_of(data, lambda name: int(name[4:7]) / 2)[0] == {n: int(n[4:7]) / 2 for n in names}
    with fo.Feed(data, batch_size=16, labels=None) as feed:
        assert {labels for _, labels in feed.epoch(0)} == {None}


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
