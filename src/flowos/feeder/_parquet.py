"""Rows of Parquet files as samples, by the package pyarrow.

Parquet is read by row groups: for one row, a whole row group of the column is read and
decompressed. So rows that are requested at the same time share one read; a group that was read
stays in memory as long as there is room; and all its rows are offered to the feed's cache: with a
cache for the whole data set each row group is read once per node. With neither cache nor memory
for the column, a shuffled epoch reads it up to `rows per group` times over: write small row groups
(a hundred rows) then.

There is no shuffling by row group: it would be another order than that of the same data elsewhere,
and less random, only to save what the cache saves as well.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flowos.feeder._arrow_rows import Rows, bytes_of_rows, is_sample_type
from flowos.feeder._entries import add, digest
from flowos.feeder._interfaces import Listing, PrefetchBudget, Tickets
from flowos.feeder._one_line import one_line
from flowos.feeder._parquet_files import open_files
from flowos.feeder._reader_threads import answer, run_threads
from flowos.feeder._row_group_queue import Group, RowGroupQueue, RowRequest
from flowos.model import FeedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from flowos._native import Catalog, Counter

_THREADS = 8
_MAX_PULLED = 256
_LIMIT = 1 << 63


class ParquetSource:
    """A row is a sample: what stands in one column. Promises: see flowos.feeder._interfaces.Source.

    where: a file, a folder, or a URL of such. column: its name, with dots for what is inside
    (`image.bytes`); empty: the only candidate. label_column: whole numbers, or texts,
    which are numbered in byte order; empty: no labels.
    memory_bytes: for row groups that were read; one per thread is held anyway.
    """

    def __init__(
        self,
        where: str | Path,
        *,
        column: str = "",
        label_column: str = "",
        memory_bytes: int = 1 << 30,
    ) -> None:
        self._files = open_files(where)
        self.name = self._files.name
        self._requested, self._label_column = column, label_column
        self._memory = _Memory(memory_bytes)

    def identity(self) -> str:
        entries = self._files.entries()
        words = [f"{entry.key} {entry.size_bytes} {entry.tag}" for entry in entries]
        return digest(self._requested, self._label_column, *words)

    def listing(self, budget: PrefetchBudget) -> Listing:
        """Row groups are no samples: nothing is read."""
        del budget
        return Listing(self.catalog)

    def catalog(self, found: "Counter | None" = None) -> "Catalog":
        from flowos._native import Catalog

        keys = [entry.key for entry in self._files.entries()]
        counts = self._files.patience.map(lambda key: self._count(key, found), keys, _THREADS)
        with_rows = [key for key, rows in zip(keys, counts, strict=True) if rows]
        column = self._column((with_rows or keys)[0])
        if not with_rows:
            raise FeedError(f"{self.name}: there are no rows of {column}")
        self._check_alike(with_rows, column)
        labels, classes = self._labels(with_rows) if self._label_column else (None, [])
        names = [
            f"{key}[{row}]" for key, rows in zip(keys, counts, strict=True) for row in range(rows)
        ]
        groups = np.repeat(np.arange(len(keys)), counts).tolist()
        return Catalog(keys, names, groups, [-1] * len(names), labels, classes=classes)

    def serve(self, tickets: Tickets, catalog: "Catalog") -> None:
        keys, group_of = catalog.groups(), catalog.group_of()
        column = self._column(keys[int(group_of[0])])
        counts = np.bincount(group_of, minlength=len(keys))
        firsts = np.concatenate(([0], np.cumsum(counts)))
        queue = RowGroupQueue()
        puller = threading.Thread(
            target=self._pull, args=(tickets, queue, keys, firsts), name="flowos-pull", daemon=True
        )
        puller.start()
        run_threads(lambda: self._work(tickets, queue, column), _THREADS)
        puller.join()

    def _pull(
        self,
        tickets: Tickets,
        queue: RowGroupQueue,
        keys: Sequence[str],
        firsts: "NDArray[np.int64]",
    ) -> None:
        """firsts: of each file, its first sample."""
        try:
            while got := tickets.pull(_MAX_PULLED):
                rows: list[tuple[Group, RowRequest]] = []
                for ticket, sample in got:
                    file = int(np.searchsorted(firsts, sample, side="right")) - 1
                    try:
                        group, row = self._files.find(keys[file], sample - int(firsts[file]))
                    except Exception as why:
                        tickets.fail(ticket, one_line(why))
                    else:
                        rows.append(((keys[file], group), (ticket, sample, row)))
                queue.put(rows)
        finally:
            queue.close()
            self._files.patience.give_up()

    def _work(self, tickets: Tickets, queue: RowGroupQueue, column: str) -> None:
        while taken := queue.take():
            group, requests = taken
            rows, is_new = self._rows(group, column)
            while requests:
                for ticket, _, row in requests:
                    answer(tickets, ticket, partial(_row, rows, row))
                if is_new and isinstance(rows, Rows):
                    _, sample, row = requests[0]
                    self._offer(tickets, rows, sample - row)
                    is_new = False
                requests = queue.more(group)

    def _rows(self, group: Group, column: str) -> tuple[Rows | Exception, bool]:
        """The rows, or why they cannot be had; and whether they were read just now."""
        kept = self._memory.get(group)
        if kept is not None:
            return kept, False
        try:
            rows = self._files.rows(*group, column)
        except Exception as why:
            return why, False
        self._memory.keep(group, rows)
        return rows, True

    def _offer(self, tickets: Tickets, rows: Rows, first: int) -> None:
        """Writes all rows of a group to the cache; without one, they stay in memory."""
        for row in range(len(rows)):
            try:
                data = rows[row]
            except FeedError:  # it is null
                continue
            if not tickets.offer(first + row, data):
                self._memory.has_to_do(self.name, len(rows))
                return

    def _count(self, key: str, found: "Counter | None") -> int:
        rows = int(self._files.footer(key).num_rows)
        add(found, rows)
        return rows

    def _column(self, key: str) -> str:
        """Raises FeedError if there is none, it cannot hold samples, or several could."""
        columns = dict(_columns(self._files.schema(key)))
        fit = [name for name, kind in columns.items() if is_sample_type(kind)]
        if self._requested in fit:
            return self._requested
        if self._requested in columns:
            kind = columns[self._requested]
            raise FeedError(
                f"{self.name}: column {self._requested} is {kind}, one of {fit} can be read"
            )
        if self._requested:
            raise FeedError(f"{self.name}: no column {self._requested}; there are {list(columns)}")
        if not fit:
            there = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
            raise FeedError(
                f"{self.name}: no column can be a sample: bytes, texts and lists of numbers can; "
                f"there are {there or 'no columns'}"
            )
        likely = [name for name in fit if name != self._label_column] or fit
        if len(likely) != 1:
            raise FeedError(f"{self.name}: say which column is the sample: one of {likely}")
        return likely[0]

    def _check_alike(self, keys: Sequence[str], column: str) -> None:
        """Raises FeedError if a file has no such column, or its rows are other bytes than those of
        the first.
        """
        first, *others = keys
        wanted = self._kind(first, column)
        for key in others:
            kind = self._kind(key, column)
            if bytes_of_rows(kind) != bytes_of_rows(wanted):
                raise FeedError(
                    f"{self._files.where(key)}: column {column} is {kind}, but {wanted} in "
                    f"{first}: write all files with one type"
                )

    def _kind(self, key: str, column: str) -> Any:
        """The Arrow type of a column. Raises FeedError if the file has not one of this name."""
        columns = _columns(self._files.schema(key))
        kinds = [kind for name, kind in columns if name == column]
        if not kinds:
            there = [name for name, _ in columns]
            raise FeedError(f"{self._files.where(key)}: no column {column}; there are {there}")
        if len(kinds) > 1:
            raise FeedError(
                f"{self._files.where(key)}: {len(kinds)} columns are called {column}: write it "
                "again with names of their own"
            )
        return kinds[0]

    def _labels(self, keys: Sequence[str]) -> tuple[list[int], list[str]]:
        """And the names that they number. Raises FeedError if there is no such column, or it
        has nulls, or neither whole numbers nor texts.
        """
        name = self._label_column
        for key in keys:
            self._kind(key, name)
        columns = self._files.patience.map(
            lambda key: self._files.column(key, name), keys, _THREADS
        )
        said = [
            _label_values(self._files.where(key), name, column)
            for key, column in zip(keys, columns, strict=True)
        ]
        texts = [key for key, values in zip(keys, said, strict=True) if isinstance(values[0], str)]
        if not texts:
            return [int(value) for values in said for value in values], []
        if len(texts) < len(keys):
            other = next(key for key in keys if key not in texts)
            raise FeedError(
                f"{self.name}: labels in {name} are texts in {texts[0]}, whole numbers in {other}: "
                "write all files with one type"
            )
        names = [str(value) for values in said for value in values]
        classes = sorted(set(names), key=str.encode)
        numbers = {text: at for at, text in enumerate(classes)}
        return [numbers[text] for text in names], classes


def _label_values(where: str, name: str, values: Any) -> list[int] | list[str]:
    """What one file says, which has rows. Raises FeedError where that is no label."""
    import pyarrow.types as types

    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if values.null_count:
        raise FeedError(f"{where}: {values.null_count} labels in {name} are null")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return list(values.to_pylist())
    if not (types.is_integer(kind) or types.is_boolean(kind)):
        raise FeedError(f"{where}: labels are whole numbers or texts, {name} is not: it is {kind}")
    numbers = [int(value) for value in values.to_pylist()]
    for number in (min(numbers), max(numbers)):
        if not -_LIMIT < number < _LIMIT:  # the lowest of 64 bits stands for none
            raise FeedError(
                f"{where}: the label {number} in {name} is out of range: expected more than "
                "-2**63 and less than 2**63"
            )
    return numbers


def _row(rows: Rows | Exception, row: int) -> memoryview:
    if isinstance(rows, Exception):
        raise rows
    return rows[row]


class _Memory:
    """Row groups that were read, as many as there is room for; the one not used longest goes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._groups: OrderedDict[Group, Rows] = OrderedDict()
        self._bytes = 0
        self._lost = self._is_reported = False
        self._lock = threading.Lock()

    def get(self, group: Group) -> Rows | None:
        with self._lock:
            if group in self._groups:
                self._groups.move_to_end(group)
            return self._groups.get(group)

    def keep(self, group: Group, rows: Rows) -> None:
        with self._lock:
            if group not in self._groups:
                self._groups[group] = rows
                self._bytes += rows.size_bytes
            while self._bytes > self._max_bytes:
                self._bytes -= self._groups.popitem(last=False)[1].size_bytes
                self._lost = True

    def has_to_do(self, name: str, rows: int) -> None:
        """There is no cache. Says once what that costs, where it costs much."""
        with self._lock:
            report = self._lost and not self._is_reported
            self._is_reported = self._is_reported or report
        if report:
            logging.getLogger("flowos.feed").warning(
                "%s: its rows are requested in no order, and its row groups, of about %d rows, fit "
                "neither into a cache nor into memory_bytes=%d, so each is read many times per "
                "epoch: give the feed a larger cache, or write row groups of a hundred rows",
                name,
                rows,
                self._max_bytes,
            )


def _columns(schema: Any) -> list[tuple[str, Any]]:
    """Names and types, with those inside of structs after a dot."""
    import pyarrow.types as types

    found: list[tuple[str, Any]] = []

    def note(name: str, kind: Any) -> None:
        if types.is_struct(kind):
            for inner in kind:
                note(f"{name}.{inner.name}", inner.type)
        else:
            found.append((name, kind))

    for field in schema:
        note(field.name, field.type)
    return found
