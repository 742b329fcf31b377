"""Which samples there are: listed, or as kept from the last time where that still holds."""

from contextlib import suppress
from typing import TYPE_CHECKING

from flowos.feeder._home import Home, write_whole
from flowos.feeder._mounted import Mounted
from flowos.feeder._source import digest

if TYPE_CHECKING:
    from flowos._native import Catalog, Counter
    from flowos.feeder._source import Source


def catalog_of(
    source: "Mounted | Source", home: Home | None, found: "Counter | None" = None
) -> "tuple[Catalog, int]":
    """The catalog, and a key: what was cached under another one is not of these bytes.

    Kept, if there is a home for it; there one process lists it for all. FeedError: no data.
    """
    if home is None:
        return source.catalog(found), 0
    identity = "" if isinstance(source, Mounted) else source.identity()
    catalog = _kept(source, home, identity)
    if catalog is None:
        with home.locked():
            catalog = _kept(source, home, identity) or _listed(source, home, identity, found)
    key = catalog.cache_key()
    return catalog, int(digest(str(key), identity)[:16], 16) if identity else key


def _kept(source: "Mounted | Source", home: Home, identity: str) -> "Catalog | None":
    from flowos._native import Catalog

    try:
        data = (home.folder / "catalog").read_bytes()
    except OSError:
        return None
    head, _, body = data.partition(b"\n")
    if head != _head(identity):
        return None
    catalog = Catalog.parse(body)
    if catalog is None:
        return None
    holds = source.still_holds(catalog) if isinstance(source, Mounted) else bool(identity)
    return catalog if holds else None


def _listed(
    source: "Mounted | Source", home: Home, identity: str, found: "Counter | None"
) -> "Catalog":
    """The identity is from before: it is another one, should the source have changed meanwhile."""
    catalog = source.catalog(found)
    with suppress(OSError):  # then it is listed again the next time
        write_whole(home.folder / "catalog", _head(identity) + b"\n" + catalog.serialized())
    return catalog


def _head(identity: str) -> bytes:
    return f"flowos catalog 1 {identity}".encode()
