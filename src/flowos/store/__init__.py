"""Runs, samples, slice events and the names of images: SQLite by default, any SQLAlchemy URL."""

from flowos.store._place import default_file, lies_on_network
from flowos.store._store import KeptImage, SliceEvent, Store, open_store

__all__ = ["KeptImage", "SliceEvent", "Store", "default_file", "lies_on_network", "open_store"]
