"""Location of the database, and settings of its connections."""

import math
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from flowos.model import StoreError
from flowos.store._errors import missing_driver
from flowos.store._files import default_file, lies_on_network

_LOCK_KEY = 0x466C6F774F53  # "FlowOS": ours among the server's advisory locks


def read_url(given: str | None) -> URL:
    """The database of a URL, of a file's path, or of None (the user's own file).

    Raises StoreError if it is invalid. A path must contain a / or end in .db or .sqlite: any other
    word is more likely a typing error than a file.
    """
    if not given:
        return _file_url(default_file())
    if "://" not in given:
        if "/" not in given and not given.endswith((".db", ".sqlite")):
            raise StoreError(
                f"store {given!r:.120}: expected an SQLAlchemy URL, such as sqlite:///PATH, or the "
                "path of an SQLite file (./NAME)"
            )
        return _file_url(Path(given).expanduser())
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise StoreError(
            "the database URL cannot be read: write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    return url


def _file_url(path: Path) -> URL:
    return URL.create("sqlite", database=str(path.absolute()))


def file_of(url: URL) -> Path | None:
    """The file of an SQLite database; None for a server or a database in memory."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def stamp(given: str | None) -> tuple[object, ...] | None:
    """See `flowos.store.file_stamp`. Writers append to the file of the write-ahead log."""
    file = file_of(read_url(given))
    if file is None:
        return None
    return tuple(map(_state_of, (file, file.with_name(f"{file.name}-wal"))))


def _state_of(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def make_folder(file: Path) -> None:
    """Create the folder of the database if it does not exist, with access for its owner only."""
    if not file.parent.exists():
        file.parent.mkdir(mode=0o700, parents=True)


def connect(url: URL, wait_seconds: float) -> Engine:
    """An engine that waits for other writers. Raises StoreError if the driver is missing."""
    file = file_of(url)
    local = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"connect_args": {"timeout": wait_seconds}} if local else {}
    if url.get_backend_name() == "postgresql":
        options = {"connect_args": {"connect_timeout": math.ceil(wait_seconds)}}
    try:
        engine = create_engine(_as_opened(url, file), pool_pre_ping=not local, **options)
    except (ImportError, NoSuchModuleError) as error:
        raise missing_driver(error, url) from None
    if local:
        _behave_as_two_writers_need(engine, file)
    return engine


def _as_opened(url: URL, file: Path | None) -> URL:
    """Opens a file as immutable if its folder is not writable, because WAL would write there."""
    if file is None or not file.exists() or os.access(file.parent, os.W_OK):
        return url
    if file.with_name(file.name + "-wal").exists():
        return url
    query = {"immutable": "1", "uri": "true"}
    return URL.create("sqlite", database=f"file:{quote(str(file))}", query=query)


def _behave_as_two_writers_need(engine: Engine, file: Path | None) -> None:
    """Allows readers during a write (WAL); writers lock first, so that they wait, not fail.

    WAL shares memory between processes, so it must not be used on a network file system.
    See sqlite.org/wal.html and SQLAlchemy's page on pysqlite's transactions.
    """
    journal = "DELETE" if file is None or lies_on_network(file) else "WAL"

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        _set_journal(connection, journal)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_journal(connection: sqlite3.Connection, journal: str) -> None:
    """Set the mode, which the file stores; later or read-only connections leave it unchanged."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode.upper() != journal:
        with suppress(sqlite3.OperationalError):
            connection.execute(f"PRAGMA journal_mode = {journal}")


def lock_schema(connection: Connection) -> None:
    """Let only one program migrate at a time. With SQLite the writer already has the lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
