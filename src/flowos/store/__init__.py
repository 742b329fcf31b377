"""Database of runs, samples, processes, slices, and origins of images.

SQLite by default, or a PostgreSQL server.
"""

from typing import TYPE_CHECKING

from flowos.store._files import default_file, lies_on_network

if TYPE_CHECKING:
    from flowos.store._image_record import ImageRecord
    from flowos.store._store import Store

__all__ = ["ImageRecord", "Store", "default_file", "file_stamp", "lies_on_network", "open_store"]


def open_store(url: str | None = None, *, make: bool = True, wait_seconds: float = 30.0) -> "Store":
    """Open a database; create or migrate it if necessary.

    url: None for the user's own SQLite file, a path, or a URL: sqlite:///FILE or
    postgresql://USER@HOST/NAME. make: create a named file that does not exist; the user's own is
    always created. wait_seconds: for another program that holds it. Raises StoreError if it cannot
    be created, opened or migrated, or if a newer FlowOS wrote it.
    """
    from flowos.store._store import opened

    return opened(url, make=make, wait_seconds=wait_seconds)


def file_stamp(url: str | None = None) -> tuple[object, ...] | None:
    """Another value after each change of an SQLite file; None for a server.

    Raises StoreError if the URL is invalid.
    """
    from flowos.store._place import stamp

    return stamp(url)


def __getattr__(name: str) -> object:
    if name == "ImageRecord":
        from flowos.store._image_record import ImageRecord

        return ImageRecord
    if name != "Store":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flowos.store._store import Store

    return Store
