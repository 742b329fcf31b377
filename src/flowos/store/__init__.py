"""Runs, samples and slice events in a database: SQLite by default, any SQLAlchemy URL."""

from flowos.store._place import default_file
from flowos.store._store import SliceEvent, Store, open_store

__all__ = ["SliceEvent", "Store", "default_file", "open_store"]
