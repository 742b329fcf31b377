"""A database in a file, by SQLite. See sqlite.org/wal.html."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from urllib.parse import quote

from flowos.store._database import NO_VALUES, Execute, Row, Values
from flowos.store._files import lies_on_network

MEMORY = ":memory:"


class SqliteFile:
    """The file of a path, or a database in memory (None). See `Database`.

    Readers may read while another program writes (WAL); writers lock first, so that they wait
    rather than fail. WAL shares memory between processes, so it must not be used on a network file
    system. Threads of this process take turns.
    """

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    number = "INTEGER PRIMARY KEY"
    secrets: tuple[str, ...] = ()

    def __init__(self, file: Path | None, wait_seconds: float) -> None:
        """Raises sqlite3.Error if it cannot be opened."""
        self.place = str(file or MEMORY)
        name, is_uri = _as_opened(file)
        self._turn = RLock()
        self._connection = sqlite3.connect(
            name, timeout=wait_seconds, isolation_level=None, check_same_thread=False, uri=is_uri
        )
        try:
            self._prepare("DELETE" if file is None or lies_on_network(file) else "WAL")
        except BaseException:
            self.close()
            raise

    def _prepare(self, journal: str) -> None:
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute("PRAGMA synchronous = FULL")
        (mode,) = self._connection.execute("PRAGMA journal_mode").fetchone()
        if mode.upper() != journal:  # a later or a read-only connection leaves it unchanged
            with suppress(sqlite3.OperationalError):
                self._connection.execute(f"PRAGMA journal_mode = {journal}")

    def rows(self, query: str, values: Values = NO_VALUES) -> list[Row]:
        with self._turn:
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[Execute]:
        with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._changed
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise

    def _changed(self, statement: str, values: Values = NO_VALUES, /) -> int:
        return self._connection.execute(statement, values).rowcount

    def has_table(self, name: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return bool(self.rows(query, {"name": name}))

    def lock_schema(self, execute: Execute) -> None:
        """Nothing to do: a writer has the lock."""

    def close(self) -> None:
        self._connection.close()


def _as_opened(file: Path | None) -> tuple[str, bool]:
    """Name, and whether it is a URI: immutable where WAL could not write its files next to it."""
    if file is None:
        return MEMORY, False
    if not file.exists() or os.access(file.parent, os.W_OK):
        return str(file), False
    if file.with_name(f"{file.name}-wal").exists():
        return str(file), False
    return f"file:{quote(str(file))}?immutable=1", True
