"""`flowos cloud sizes`: machines of clouds with what they cost, and which of them a pool's are."""

import difflib
from collections.abc import Collection, Sequence

from flowos._dataclasses import replace
from flowos.drivers.clouds.sizes import vm_sizes
from flowos.model import Pool, Price, SettingsError, SettingsLayer, VmSize

_OF_A_PRICE = frozenset(("size", "region", "spot"))


def known_sizes(own: Sequence[VmSize]) -> tuple[VmSize, ...]:
    """The catalogue's. own: sizes of the settings, which count before those of the same name."""
    names = {size.name for size in own}
    return (*own, *(size for size in vm_sizes() if size.name not in names))


def fitting_sizes(
    own: Sequence[VmSize] = (),
    *,
    region: str = "",
    vcpus: int = 0,
    gpus: int = 0,
    memory_bytes: int = 0,
) -> tuple[VmSize, ...]:
    """Sizes that have at least this, the cheapest first, one currency after the other."""
    known = known_sizes(own)
    currencies = [*dict.fromkeys(size.currency for size in known)]
    found = [
        size
        for size in known
        if size.fits(vcpus=vcpus, gpus=gpus, memory_bytes=memory_bytes)
        and region in ("", size.region)
    ]

    def place(size: VmSize) -> tuple[bool, int, float]:
        return size.price is None, currencies.index(size.currency), size.price or 0.0

    return tuple(sorted(found, key=place))


def size_of(pool: Pool, own: Sequence[VmSize], said: SettingsLayer) -> VmSize | None:
    """What each node of a pool is; without a price if the pool has its own, and its region's is not
    known. said: the settings. Raises SettingsError if there is no such size, or if it is not known
    what it costs there.
    """
    if not pool.size:
        return None
    known = known_sizes(own)
    found = [size for size in known if size.name == pool.size]
    if not found:
        names = dict.fromkeys(size.name for size in known)
        what = f"no size {pool.size!r}{_nearest(pool.size, names)}; flowos cloud sizes shows all"
        raise said.mistake(("pools", pool.name, "size"), what)
    here = [size for size in found if not size.region or pool.region in ("", size.region)]
    if len({(size.price, size.spot, size.currency) for size in here}) == 1:
        return here[0]
    if _has_price(pool):
        return replace(found[0], region=pool.region, price=None, spot=None)
    regions = "; name one of " + ", ".join(size.region for size in found)
    if not here:
        raise _wrong(said, pool, "region", f"{pool.size} has no price in {pool.region}{regions}")
    raise _wrong(said, pool, "region", f"it is empty, and {pool.size} costs more in some{regions}")


def with_its_price(pool: Pool, own: Sequence[VmSize], said: SettingsLayer) -> Pool:
    """A pool whose nodes cost what their size does, unless it says what they cost.

    Raises SettingsError if there is no such size, or no price of it.
    """
    size = size_of(pool, own, said)
    if size is None or _has_price(pool):
        return pool
    hour = size.spot if pool.spot else size.price
    if hour is None and pool.spot:
        where = f" in {size.region}" if size.region else ""
        what = f"no spot price of {size.name}{where} is known; give price.per_node_hour"
        raise _wrong(said, pool, "spot", what)
    return replace(pool, price=Price(per_node_hour=hour, currency=size.currency))


def _has_price(pool: Pool) -> bool:
    return pool.price is not None and pool.price.per_node_hour is not None


def _nearest(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, names, 1, 0.0)
    return "".join(f"; the nearest is {each!r}" for each in near)


def _wrong(said: SettingsLayer, pool: Pool, key: str, what: str) -> SettingsError:
    return said.mistake_together(("pools", pool.name, key), what, _OF_A_PRICE)
