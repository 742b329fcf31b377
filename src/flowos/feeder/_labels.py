"""The class or value of each sample: of its folder, of a CSV file, or of a function of its name."""

import csv
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowos.feeder._source import one_line
from flowos.model import FeedError, shown

if TYPE_CHECKING:
    from flowos._native import Catalog

_TABLE = ".parquet"
_FILES = (".tar", _TABLE)

Label: TypeAlias = int | float | str
How: TypeAlias = str | PathLike[str] | Callable[[str], Label] | None
Values: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labels:
    """values: of each sample, int64 or float64 (samples,); None: they have none.

    classes: the names that class numbers stand for; empty where numbers were given.
    """

    values: Values | None = None
    classes: tuple[str, ...] = ()


def labels_of(catalog: "Catalog", how: How) -> Labels:
    """how: "folders", the path of a CSV file, a function of a sample's name, or None.

    FeedError: a sample has none, or what was given cannot be a label.
    """
    if how is None:
        return Labels()
    if callable(how):
        return _by_function(catalog, how)
    if how == "folders":
        return _as_listed(catalog)
    return _by_table(catalog, Path(fspath(how)))


def numbered(given: Sequence[Label]) -> Labels:
    """Whole numbers stay, so do others; names become numbers in sorted order."""
    kinds = {type(value) for value in given}
    if kinds <= {int, bool}:
        return Labels(np.asarray(given, dtype=np.int64))
    if kinds <= {int, bool, float}:
        return Labels(np.asarray(given, dtype=np.float64))
    if kinds == {str}:
        classes = tuple(sorted({str(name) for name in given}))
        number: dict[Label, int] = {name: at for at, name in enumerate(classes)}
        return Labels(np.asarray([number[name] for name in given], dtype=np.int64), classes)
    other = next((value for value in given if type(value) not in (int, bool, float, str)), None)
    what = "names and numbers" if other is None and None not in given else shown(other)
    raise FeedError(f"labels: {what} among them; expected whole numbers, or floats, or names")


def _as_listed(catalog: "Catalog") -> Labels:
    """What a shard's or a table's own labels say; else the folder that a sample lies in.

    Samples in the root of a folder are in no class.
    """
    values, groups = catalog.labels(), catalog.groups()
    if not bool((values >= 0).any()):
        return Labels()
    if bool((values < 0).any()):
        bare = catalog.name(int(np.argmax(values < 0)))
        raise FeedError(f"labels: {bare} is in no class, others are: mend it, or give labels=None")
    group_of = catalog.group_of()
    if not np.array_equal(values, group_of) or all(name.endswith(_FILES) for name in groups):
        by_file = groups[0].endswith(_TABLE) and np.array_equal(values, group_of)
        return Labels() if by_file else Labels(values)
    order = sorted(range(len(groups)), key=lambda at: os.fsencode(groups[at]))
    number = np.empty(len(groups), dtype=np.int64)
    number[order] = np.arange(len(groups))
    return Labels(number[values], tuple(groups[at] for at in order))


def _by_function(catalog: "Catalog", label: Callable[[str], Label]) -> Labels:
    def of(sample: int) -> Label:
        name = catalog.name(sample)
        try:
            value = label(name)
        except Exception as why:
            raise FeedError(
                f"labels: {one_line(why)}, of the function called for {name!r}"
            ) from why
        return value.item() if isinstance(value, np.generic) else value

    return numbered([of(sample) for sample in range(len(catalog))])


def _by_table(catalog: "Catalog", file: Path) -> Labels:
    rows = _rows(file)
    names = [catalog.name(sample) for sample in range(len(catalog))]
    missing = [name for name in names if name not in rows]
    if missing:
        also = f" and {len(missing) - 1} more samples" if len(missing) > 1 else ""
        raise FeedError(
            f"{file}: no row for {missing[0]}{also}; a row is PATH,LABEL with the path below "
            "the source, as in: n01440764/10026.jpg,tench"
        )
    said = [rows[name] for name in names]
    return numbered(_as_numbers(said, int) or _as_numbers(said, float) or said)


def _as_numbers(words: Sequence[str], kind: type[int] | type[float]) -> Sequence[Label] | None:
    try:
        return [kind(word) for word in words]
    except ValueError:
        return None


def _rows(file: Path) -> Mapping[str, str]:
    found: dict[str, str] = {}
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as opened:
            for line, name, label in _pairs(file, csv.reader(opened)):
                if found.setdefault(name, label) != label:
                    raise FeedError(
                        f"{file}, line {line}: {name} is {label}, but {found[name]} further up"
                    )
    except OSError as why:
        raise FeedError(f"labels: {file}: {why.strerror}; give 'folders' or a CSV file") from why
    except csv.Error as why:
        raise FeedError(f"{file}: no CSV file: {why}") from why
    return found


def _pairs(file: Path, rows: Iterator[list[str]]) -> Iterator[tuple[int, str, str]]:
    """A header is a row like any other: it labels a sample that is not there."""
    for line, row in zip(itertools.count(1), rows, strict=False):
        if not row:
            continue
        if len(row) < 2:
            raise FeedError(f"{file}, line {line}: {row[0]!r:.80}: a row is PATH,LABEL")
        yield line, row[0].strip().removeprefix("./"), row[1].strip()
