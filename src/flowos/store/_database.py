"""What the store needs of a database, and how its failures become one line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from flowos.model import StoreError

Values = Mapping[str, object]
Row = tuple[Any, ...]
NO_VALUES: Values = {}


class Execute(Protocol):
    """Runs a statement with its values; returns the number of rows that it changed."""

    def __call__(self, statement: str, values: Values = NO_VALUES, /) -> int: ...


class Database(Protocol):
    """A database that is open. Statements name their values as in `WHERE id = :id`.

    place: for display, without secrets. secrets: what no message may show. errors: what it raises.
    number: type of a column that numbers the rows.
    """

    place: str
    secrets: tuple[str, ...]
    errors: tuple[type[Exception], ...]
    number: str

    def rows(self, query: str, values: Values = NO_VALUES) -> list[Row]:
        """What a query finds."""
        ...

    def writing(self) -> AbstractContextManager[Execute]:
        """A transaction: all of its statements or none."""
        ...

    def has_table(self, name: str) -> bool: ...

    def lock_schema(self, execute: Execute) -> None:
        """Let only one program migrate at a time, until the transaction ends."""
        ...

    def close(self) -> None: ...


_ELSEWHERE = "name a place that can (--store FILE, or XDG_DATA_HOME)"
_REMEDIES = (
    ("database or disk is full", "the disk is full: free some space, or name another place"),
    ("disk i/o error", "the disk refused to write: see its free space, quota and file size limit"),
    ("readonly database", f"it cannot be written: {_ELSEWHERE}"),
    ("read-only", f"it cannot be written: {_ELSEWHERE}"),
    ("unique constraint", "this run is kept there already: a run's id must be new"),
    ("foreign key constraint", "its run never began there: begin the run first"),
    ("unable to open database file", "it cannot be opened or made: see the folder's permissions"),
    ("database is locked", "another program holds it: end that program, or try again"),
    ("not a database", "this file is no database: name another place"),
    ("malformed", "the file is damaged: move it away, then a new one is made"),
    ("password authentication failed", "the server refused user or password"),
    ("no password supplied", "the server wants a password: put it into ~/.pgpass"),
    (
        "does not exist",
        "the server does not know this database or user: create it, or mend the URL",
    ),
    ("is the server running", "no server answers there: start it, or mend the URL"),
    ("connection refused", "no server answers there: start it, or mend the URL"),
    ("failed to resolve host", "the host is unknown: mend the URL"),
    ("no such file or directory", f"a part of this path cannot be made: {_ELSEWHERE}"),
    ("not a directory", "a part of this path is a file: name another place"),
    ("denied for schema", "this user may not: ask for the right to create tables there"),
    ("permission denied for", "this user may not: ask for the right to read and write its tables"),
    ("permission denied", f"this user may not write there: {_ELSEWHERE}"),
    ("lock timeout", "another program holds it: end that program, or try again"),
    ("timeout", "the server did not answer in time: see whether it can be reached"),
)


@contextmanager
def translated(
    doing: str, place: str, errors: tuple[type[Exception], ...], secrets: tuple[str, ...] = ()
) -> Iterator[None]:
    """Context in which every error of the database becomes a StoreError."""
    caught: tuple[type[Exception], ...] = (*errors, OSError, UnicodeError)
    try:
        yield
    except caught as error:
        said = describe(str(error), secrets)
        raise StoreError(f"cannot {doing} {place}: {said}") from None


def describe(error: str, secrets: tuple[str, ...] = ()) -> str:
    """How to mend it; for an unknown error its own words, in one line and without secrets."""
    said = " ".join(error.split())
    for secret in filter(None, secrets):
        said = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", said)
    return next((mend for sign, mend in _REMEDIES if sign in said.lower()), said[:300])
