"""Translates errors of the database to StoreError, with place and remedy, without password."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from flowos.model import StoreError

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
    ("connection refused", "no server answers there: start it, or mend the URL"),
    ("failed to resolve host", "the host is unknown: mend the URL"),
    ("no such file or directory", f"a part of this path cannot be made: {_ELSEWHERE}"),
    ("not a directory", "a part of this path is a file: name another place"),
    ("permission denied for", "this user may not: ask for the right to create tables there"),
    ("permission denied", f"this user may not write there: {_ELSEWHERE}"),
    ("timeout", "the server did not answer in time: see whether it can be reached"),
)

_CALLED_OTHERWISE = {"MySQLdb": "mysqlclient", "mysql": "mysql-connector-python"}
"""Modules of drivers -> their packages."""


@contextmanager
def translated(url: URL, doing: str) -> Iterator[None]:
    """Context in which every error of the database becomes a StoreError."""
    try:
        yield
    except (SQLAlchemyError, OSError, UnicodeError) as error:
        raise StoreError(describe(error, url, doing)) from None


def describe(error: Exception, url: URL, doing: str) -> str:
    """One line: what failed, where, and how to fix it."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    said = _one_line(str(cause), url)
    remedy = next((mend for sign, mend in _REMEDIES if sign in said.lower()), said)
    return f"cannot {doing} {place(url)}: {remedy}"


def missing_driver(error: Exception, url: URL) -> StoreError:
    """Error for a missing Python driver of this kind of database."""
    if isinstance(error, NoSuchModuleError):
        remedy = "this kind of database is unknown: use sqlite:///FILE or postgresql://HOST/NAME"
    elif url.get_backend_name() == "postgresql":
        remedy = "its driver is missing: pip install 'flowos-hpc[postgresql]'"
    else:
        module = getattr(error, "name", None) or "it"
        remedy = f"its driver is missing: pip install {_CALLED_OTHERWISE.get(module, module)}"
    return StoreError(f"cannot use {place(url)}: {remedy}")


def place(url: URL) -> str:
    """The database for display: a path, or the URL without secrets."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    secrets = {key: "***" for key in url.query if "pass" in key.lower()}
    return url.update_query_dict(secrets).render_as_string(hide_password=True)


def _one_line(text: str, url: URL) -> str:
    words = " ".join(text.split())
    for secret in (url.password, *(v for k, v in url.query.items() if "pass" in k.lower())):
        if secret:
            words = words.replace(str(secret), "***")
    return words[:300]
