"""A database of a PostgreSQL server, by psycopg."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from flowos.model import StoreError
from flowos.store._database import NO_VALUES, Execute, Row, Values

if TYPE_CHECKING:
    from psycopg import Connection

_LOCK_KEY = 0x466C6F774F53  # "FlowOS": ours among the server's advisory locks


class PostgresqlServer:
    """The database of a postgresql:// URL. See `Database`. Threads of this process take turns."""

    number = "SERIAL PRIMARY KEY"

    def __init__(self, url: str, wait_seconds: float) -> None:
        """Connects later. Raises StoreError if psycopg is missing or the URL is invalid."""
        self.place = without_secrets(url)
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError:
            raise StoreError(
                f"cannot use {self.place}: its driver is missing: "
                "pip install 'flowos-hpc[postgresql]'"
            ) from None
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            parts = {"port": "unknown"}
        if not re.fullmatch(r"[\d,]*", str(parts.get("port", ""))):
            raise StoreError(
                "the database URL cannot be read: write postgresql://USER@HOST:PORT/NAME"
            )
        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        self.secrets = tuple(str(value) for name, value in parts.items() if "pass" in name)
        seconds = math.ceil(wait_seconds)
        self._to = make_conninfo(
            url, connect_timeout=seconds, tcp_user_timeout=1000 * seconds, keepalives_idle=seconds
        )
        self._lock_timeout = f"SET lock_timeout = '{seconds}s'"
        self._turn = RLock()
        self._connection: Connection | None = None

    def _connected(self) -> "Connection":
        """The connection; a new one if the server has ended it."""
        from psycopg import Error, connect

        if self._connection is not None:
            try:
                self._connection.execute("SELECT 1")
            except Error:
                self.close()
        if self._connection is None:
            self._connection = connect(self._to, autocommit=True)
            self._connection.execute(self._lock_timeout.encode())
        return self._connection

    def rows(self, query: str, values: Values = NO_VALUES) -> list[Row]:
        with self._turn:
            return self._connected().execute(_placed(query), values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[Execute]:
        with self._turn:
            connection = self._connected()

            def changed(statement: str, values: Values = NO_VALUES, /) -> int:
                return connection.execute(_placed(statement), values).rowcount

            with connection.transaction():
                yield changed

    def has_table(self, name: str) -> bool:
        # Not by to_regclass: it may not see yet what another program has just made.
        query = "SELECT 1 FROM pg_class WHERE relname = :name AND pg_table_is_visible(oid)"
        return bool(self.rows(query, {"name": name}))

    def lock_schema(self, execute: Execute) -> None:
        execute("SELECT pg_advisory_xact_lock(:key)", {"key": _LOCK_KEY})

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def without_secrets(url: str) -> str:
    """The URL for display; its password may hold what should have been written as %40."""
    hidden = re.sub(r"(://[^:@/?]*):.*@", r"\1:***@", url)
    return re.sub(r"([?&][^=&]*pass[^=&]*)=[^&]*", r"\1=***", hidden, flags=re.IGNORECASE)


def _placed(statement: str) -> bytes:
    """Values as psycopg names them."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()
