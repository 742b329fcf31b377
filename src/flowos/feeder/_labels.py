"""The class or value of each sample: of its folder, of a CSV file, or of a function of its name."""

import csv
import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isinf
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowos._dataclasses import dataclass
from flowos.feeder._extensions import has_files
from flowos.feeder._one_line import one_line
from flowos.model import FeedError, brief_repr

if TYPE_CHECKING:
    from flowos._native import Catalog

_LIMIT = 1 << 63
_MAX_DIGITS = 21  # with a sign; a number that has more is as much too large without them
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]+")
_PADDED = re.compile(r"-?0[0-9].*|-0")
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_SPLITS = frozenset({"train", "val", "valid", "validation", "test"})

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


def labels_of(catalog: "Catalog", how: How, classes: object = None) -> Labels:
    """how: "folders", the path of a CSV file, a function of a sample's name, or None.

    classes: names in the order of their numbers, or what has such (a feed); None: those that there
    are, sorted. Raises FeedError if a sample has no label or one of another class, a class has no
    sample and classes is None, or a value cannot be a label.
    """
    names = None if classes is None else _names(classes)
    if how is None and names is not None:
        raise FeedError("labels: classes= names labels, but labels=None asks for none")
    if how is None:
        found = Labels()
    elif callable(how):
        found = _by_function(catalog, how)
    elif how == "folders":
        found = _as_listed(catalog, may_be_empty=names is not None)
    elif not isinstance(how, str | PathLike):
        raise FeedError(
            f"labels: {brief_repr(how)}; expected 'folders', a CSV file, a function of a sample's "
            "name, or None"
        )
    else:
        found = _by_table(catalog, Path(fspath(how)))
    return found if names is None else _renumbered(found, names)


def numbered(given: Sequence[Label]) -> Labels:
    """Whole numbers stay, so do others; names become numbers in sorted order."""
    kinds = {type(value) for value in given}
    if kinds <= {int, bool} and not all(-_LIMIT <= number < _LIMIT for number in given):  # type: ignore[operator]
        raise FeedError("labels: a whole number among them does not fit into 64 bits")
    if kinds <= {int, bool}:
        return Labels(np.asarray(given, dtype=np.int64))
    if kinds <= {int, bool, float}:
        return Labels(np.asarray(given, dtype=np.float64))
    if kinds == {str}:
        classes = tuple(sorted({str(name) for name in given}))
        number: dict[Label, int] = {name: at for at, name in enumerate(classes)}
        return Labels(np.asarray([number[name] for name in given], dtype=np.int64), classes)
    other = next((value for value in given if type(value) not in (int, bool, float, str)), None)
    what = "names and numbers" if other is None and None not in given else brief_repr(other)
    raise FeedError(f"labels: {what} among them; expected whole numbers, or floats, or names")


def _names(classes: object) -> tuple[str, ...]:
    given = getattr(classes, "classes", classes)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        names = tuple(given)
        if all(isinstance(name, str) for name in names) and (names or given is not classes):
            twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
            if twice is None:
                return tuple(map(str, names))
            raise FeedError(f"labels: classes= has {twice!r:.80} twice")
    raise FeedError(
        f"labels: classes={brief_repr(classes)}; expected names, as ['ant', 'bee'], or another feed"
    )


def _renumbered(found: Labels, names: tuple[str, ...]) -> Labels:
    """The same labels, counted as these names are."""
    if found.values is None:
        raise FeedError("labels: classes= was given, but these samples have no labels")
    if found.classes:
        number = {name: at for at, name in enumerate(names)}
        strange = [name for name in found.classes if name not in number]
        if strange:
            also = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            known = f"{len(names)} of classes=: {brief_repr(list(names))}" if names else "no names"
            raise FeedError(f"labels: the class {strange[0]!r:.80}{also} is none of the {known}")
        values = np.asarray([number[name] for name in found.classes], dtype=np.int64)
        return Labels(values[found.values], names)
    if found.values.dtype != np.int64:
        raise FeedError("labels: classes= has names for whole numbers, and these are not whole")
    least, most = int(found.values.min()), int(found.values.max())
    if names and not 0 <= least <= most < len(names):
        strange_number = least if least < 0 else most
        raise FeedError(
            f"labels: {strange_number} is none of the {len(names)} classes, which count from 0"
        )
    return Labels(found.values, names)


def _as_listed(catalog: "Catalog", *, may_be_empty: bool) -> Labels:
    """What a shard's or a table's own labels say; else the folder below the root.

    Samples in the root of a folder are in no class.
    """
    values = catalog.labels()
    if values is None:
        return _by_folder(catalog, may_be_empty) if has_files(catalog) else Labels()
    classes = tuple(catalog.classes())
    none = values == catalog.NO_LABEL
    if bool(none.any()):
        raise FeedError(
            f"labels: {catalog.name(int(np.argmax(none)))} has no class, others have: its .cls is "
            "missing, empty or no text; mend it, or give labels=None"
        )
    if classes and all(map(_is_float, classes)):
        raise FeedError(
            f"labels: a .cls member holds {classes[0]!r:.40}, which is neither a whole number nor "
            "the name of a class; give labels=None, or a function of a sample's name"
        )
    return Labels(values, classes)


def _by_folder(catalog: "Catalog", may_be_empty: bool) -> Labels:
    """As torchvision's ImageFolder: a class is a folder of the root, with all that is below it."""
    group_of = catalog.group_of()
    tops = [_top(group) for group in catalog.groups()]
    classes = sorted({tops[at] for at in np.unique(group_of)} - {""}, key=os.fsencode)
    if not classes:
        return Labels()
    number = {name: at for at, name in enumerate(classes)}
    values = np.asarray([number.get(top, -1) for top in tops], dtype=np.int64)[group_of]
    if bool((values < 0).any()):
        bare = catalog.name(int(np.argmax(values < 0)))
        raise FeedError(f"labels: {bare} is in no class, others are: mend it, or give labels=None")
    empty = sorted({_top(folder) for folder in catalog.folders()} - {"", *classes})
    if empty and not may_be_empty:
        also = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise FeedError(
            f"labels: the folder {empty[0]!r}{also} has no sample in it, and without it all later "
            "classes would get other numbers: remove it, or say which classes there are: classes="
        )
    if not _SPLITS.isdisjoint(classes) and _SPLITS.issuperset(classes):
        warnings.warn(
            f"Feed: the classes are {', '.join(classes)}: is the data set one of these folders?",
            stacklevel=2,
        )
    return Labels(values, tuple(classes))


def _top(folder: str) -> str:
    return folder.partition("/")[0]


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
    if "" in said:
        raise FeedError(f"{file}: {names[said.index('')]} has an empty label")
    strange = next((at for at, word in enumerate(said) if _is_not_finite(word)), None)
    if strange is not None and any(map(_NUMBER.fullmatch, said)):
        raise FeedError(
            f"{file}: {names[strange]} has the label {said[strange]:.40}, others have numbers: "
            "write a finite number, or leave the sample out"
        )
    return numbered(_numbers(said) or said)


def _numbers(words: Sequence[str]) -> Sequence[Label] | None:
    """None: they are names, as they are where one is padded: 007 is not 7."""
    if not all(map(_NUMBER.fullmatch, words)) or any(map(_PADDED.fullmatch, words)):
        return None
    if all(map(_WHOLE.fullmatch, words)):
        return [int(word[:_MAX_DIGITS]) for word in words]
    return [float(word) for word in words]


def _is_not_finite(word: str) -> bool:
    """Also a number that is larger than any float."""
    if _NUMBER.fullmatch(word):
        return not _WHOLE.fullmatch(word) and isinf(float(word))
    return word.lower().lstrip("+-") in _NOT_FINITE


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


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
