"""Runs, samples, processes, and how images came to be: SQLite by default, any SQLAlchemy URL.

SQLAlchemy takes a quarter of a second to load: that happens when a store is opened, not before.
"""

from typing import TYPE_CHECKING

from flowos.store._files import default_file, lies_on_network

if TYPE_CHECKING:
    from flowos.store._kept import KeptImage
    from flowos.store._store import Store

__all__ = ["KeptImage", "Store", "default_file", "lies_on_network", "open_store"]


def open_store(url: str | None = None, *, make: bool = True) -> "Store":
    """Open, and where needed make or migrate, a database.

    url: None for the user's own SQLite file, a path, or any SQLAlchemy URL. make: may a file be
    made that is named and not there? The user's own always is.
    Raises StoreError: it cannot be made, opened or migrated, or a newer FlowOS made it.
    """
    from flowos.store._store import opened

    return opened(url, make=make)


def __getattr__(name: str) -> object:
    if name == "KeptImage":
        from flowos.store._kept import KeptImage

        return KeptImage
    if name != "Store":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flowos.store._store import Store

    return Store
