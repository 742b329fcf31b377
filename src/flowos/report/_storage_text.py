"""Storage of a pool in lines for the terminal: as promised, as seen, as measured."""

from flowos.model import PoolStorage, StorageSpeed, StorageTier
from flowos.report._units import number, share


def tier_words(tier: StorageTier) -> str:
    """What is promised: `100 TB, read 5.00 GB/s`; "" if nothing is."""
    words = [number(tier.capacity_bytes, "byte")] if tier.capacity_bytes else []
    for what, speed in _speeds(tier):
        words += [f"{what} {number(speed, 'byte/s')}"] if speed else []
    return ", ".join(words)


def storage_lines(storage: PoolStorage) -> list[str]:
    """The first line is what is seen."""
    promised = tier_words(storage.promised) if storage.promised else ""
    return [
        f"{storage.key} {storage.path}: {_seen(storage)}",
        *[f"  promised: {promised}"] * bool(promised),
        f"  {_measured(storage)}",
    ]


def _seen(storage: PoolStorage) -> str:
    where = f" on {storage.node}" if storage.node else ""
    if storage.total_bytes is None or storage.free_bytes is None:
        return storage.complaint + where
    free, total = (number(each, "byte") for each in (storage.free_bytes, storage.total_bytes))
    promised = storage.promised.capacity_bytes if storage.promised else None
    return f"{free} of {total} are free{where}{_of_promised(storage.total_bytes, promised)}"


def _measured(storage: PoolStorage) -> str:
    speed = storage.speed
    if speed is None:
        why = f" ({storage.not_measured})" if storage.not_measured else ""
        return f"not measured{why}: {storage.measure}"
    promised = dict(_speeds(storage.promised)) if storage.promised else {}
    rates = [
        f"{what} {number(rate, 'byte/s')}{_of_promised(rate, promised.get(what))}"
        for what, rate in _speeds(speed)
        if rate is not None
    ]
    at = "" if speed.folder == storage.path else f" in {speed.folder}"
    return f"measured: {', '.join(rates)}, by run {speed.run} on {speed.host}{at}"


def _speeds(of: StorageTier | StorageSpeed) -> tuple[tuple[str, float | None], ...]:
    return ("read", of.read_bytes_per_second), ("write", of.write_bytes_per_second)


def _of_promised(has: float, promised: float | None) -> str:
    return f" ({share(has / promised)} of what is promised)" if promised else ""
