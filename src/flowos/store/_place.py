"""Which database a word names."""

from pathlib import Path

from flowos._user_folders import expanded
from flowos.model import StoreError
from flowos.store._database import Database, translated
from flowos.store._files import default_file

_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
_KINDS = tuple(f"{kind}:" for kind in (*_SQLITE, *_POSTGRESQL))
_UNREADABLE = "the database URL cannot be read: write sqlite:///FILE"


def read_url(given: str | None) -> Path | str | None:
    """The file of a path, of a URL, or of None (the user's own file); or the URL of a server.

    None is a database in memory. Raises StoreError if it is invalid. A path must contain a / or
    end in .db or .sqlite: any other word is more likely a typing error than a file.
    """
    if not given:
        return default_file()
    kind, separator, rest = given.partition("://")
    if not separator and given.lower().startswith(_KINDS):
        raise StoreError(f"{_UNREADABLE} or postgresql://HOST/NAME")  # it may have a password
    if not separator:
        if "/" not in given and not given.endswith((".db", ".sqlite")):
            raise StoreError(
                f"store {given!r:.120}: expected the path of an SQLite file (./NAME), or a URL, "
                "such as postgresql://HOST/NAME"
            )
        return expanded(given).absolute()
    kind = kind.lower()
    if kind in _POSTGRESQL:
        return f"postgresql://{rest}"
    if kind not in _SQLITE:
        raise StoreError(
            f"a database of {kind[:40]!r} is unknown: use sqlite:///FILE or postgresql://HOST/NAME"
        )
    if rest in ("", "/", "/:memory:"):
        return None
    if not rest.startswith("/"):
        raise StoreError(_UNREADABLE)
    return Path(rest[1:]).absolute()


def stamp(given: str | None) -> tuple[object, ...] | None:
    """See `flowos.store.file_stamp`. Writers append to the file of the write-ahead log."""
    file = read_url(given)
    if not isinstance(file, Path):
        return None
    return tuple(map(_state_of, (file, file.with_name(f"{file.name}-wal"))))


def _state_of(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def make_private(file: Path) -> None:
    """Create the database and its folder where they do not exist, with access for their owner only:
    processes are kept with what their tasks were given."""
    if not file.parent.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # others may make it now, too
    if not file.exists():
        file.touch(0o600)


def connect(where: Path | str | None, wait_seconds: float) -> Database:
    """Open it, and wait for other writers. Raises StoreError if that fails."""
    if isinstance(where, str):
        from flowos.store._postgresql import PostgresqlServer

        return PostgresqlServer(where, wait_seconds)
    from flowos.store._sqlite import MEMORY, SqliteFile

    with translated("open", str(where or MEMORY), SqliteFile.errors):
        return SqliteFile(where, wait_seconds)
