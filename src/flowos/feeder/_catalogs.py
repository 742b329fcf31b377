"""Which samples there are: listed, or as kept from the last time where that still holds."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowos.feeder._home import Home, write_whole
from flowos.feeder._mounted import Mounted
from flowos.feeder._source import digest

if TYPE_CHECKING:
    from flowos._native import Catalog, Counter, Early
    from flowos.feeder._source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What may be read while a folder is listed: so many at once, held in so many bytes."""

    in_flight: int
    most_bytes: int


@contextmanager
def catalog_of(
    source: "Mounted | Source",
    home: Home,
    found: "Counter | None" = None,
    meanwhile: Meanwhile | None = None,
) -> "Iterator[tuple[Catalog, int, Early | None]]":
    """The catalog, and a key: what was cached under another one is not of these bytes.

    Kept in its home, where one process lists for all: the others wait until the end of the `with`.
    Early: what was read meanwhile, to be kept in the cache by then. FeedError: no data.
    """
    identity = "" if isinstance(source, Mounted) else source.identity()
    with ExitStack() as while_listed:
        catalog, early, is_new = _kept(source, home, identity), None, False
        if catalog is None:
            while_listed.enter_context(home.locked())
            early = while_listed.enter_context(_early(source, home, meanwhile))
            catalog = _kept(source, home, identity)
        if catalog is None:
            catalog, is_new = _listed(source, found, early), True
        key = catalog.cache_key()
        key = int(digest(str(key), identity)[:16], 16) if identity else key
        yield catalog, key, early
        if is_new:  # not before: who finds it waits for nobody
            _keep(catalog, home, identity)


@contextmanager
def _early(
    source: "Mounted | Source", home: Home, meanwhile: Meanwhile | None
) -> "Iterator[Early | None]":
    """What reads a folder while that is listed for the first time: later, most of it is cached."""
    from flowos._native import Early

    is_first = not (home.folder / "catalog").exists()
    if not (meanwhile and is_first and isinstance(source, Mounted) and source.kind == "folder"):
        yield None
        return
    early = Early(str(source.root), meanwhile.in_flight, meanwhile.most_bytes)
    try:
        yield early
    finally:
        early.end()


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
    source: "Mounted | Source", found: "Counter | None", early: "Early | None"
) -> "Catalog":
    return source.catalog(found, early) if isinstance(source, Mounted) else source.catalog(found)


def _keep(catalog: "Catalog", home: Home, identity: str) -> None:
    """The identity is from before: it is another one, should the source have changed meanwhile."""
    with suppress(OSError):  # then it is listed again the next time
        write_whole(home.folder / "catalog", _head(identity) + b"\n" + catalog.serialized())


def _head(identity: str) -> bytes:
    return f"flowos catalog 1 {identity}".encode()
