"""Storage of a pool: what the site promises, what is seen of it, and what runs measured of it."""

import shlex
from collections.abc import Collection
from pathlib import PurePath

from flowos.engine import SeenRoom, check_shared_folder, provider_of, room_here, room_on_a_node
from flowos.model import (
    Measurement,
    NodeInfo,
    Pool,
    PoolStorage,
    Run,
    StorageSpeed,
    StoreError,
)
from flowos.operations._pool_kinds import kind_of_pool
from flowos.operations._slice_record import RecordedProvider
from flowos.store import Store, open_store

_PATIENCE_SECONDS = 15.0
_FREE = ("idle", "free")


def storage_of(pool: Pool, nodes: Collection[NodeInfo], url: str | None) -> tuple[PoolStorage, ...]:
    """Of the folders that the settings name. nodes: of the pool, as they are now.

    The own storage of nodes is looked at on one of them, if one is free.
    """
    found = []
    if pool.shared:
        found.append(_storage(pool, "shared", room_here(pool.shared), (), url))
    if pool.scratch:
        names = {node.name for node in nodes}
        found.append(_storage(pool, "scratch", _on_a_node(pool, nodes), names, url))
    return tuple(found)


def check_folder(pool: Pool) -> None:
    """Raises SliceRefused if the folder that all nodes see takes nothing, as slices say it."""
    if not kind_of_pool(pool.kind).here:
        check_shared_folder(pool)


def _storage(
    pool: Pool, key: str, seen: SeenRoom, hosts: Collection[str], url: str | None
) -> PoolStorage:
    """hosts: on which it is measured; any, if there are none."""
    path = PurePath(getattr(pool, key))
    speed, why = _measured(path, hosts, url)
    return PoolStorage(
        key=key,
        path=path,
        promised=pool.tier(key),
        node=seen.node,
        total_bytes=seen.room.total_bytes if seen.room else None,
        free_bytes=seen.room.free_bytes if seen.room else None,
        complaint=seen.complaint,
        speed=speed,
        not_measured=why,
        measure=shlex.join(_command(pool, key, path)),
    )


def _on_a_node(pool: Pool, nodes: Collection[NodeInfo]) -> SeenRoom:
    if not any(node.state in _FREE for node in nodes):
        return SeenRoom(complaint="it is on each node, and none is free now to look at it")
    provider = RecordedProvider(provider_of(pool))
    return room_on_a_node(provider, pool.scratch, _PATIENCE_SECONDS)


def _command(pool: Pool, key: str, path: PurePath) -> tuple[str, ...]:
    words = ("flowos", "measure", "--only", _rater(), "--scratch", str(path))
    if key == "shared":
        return words
    return kind_of_pool(pool.kind).by_hand(pool, words)


def _rater() -> str:
    """The probe that says how fast storage is."""
    from flowos.probes import probes_for  # loads all of them: only where a pool names storage

    return next(probe.name for probe in probes_for() if probe.info.rates_storage)


def _measured(
    path: PurePath, hosts: Collection[str], url: str | None
) -> tuple[StorageSpeed | None, str]:
    """By the last run that measured it, and why that is not known, or ""."""
    try:
        with open_store(url, make=False) as store:
            runs = (run for run in store.runs() if _is_of(run, path, hosts))
            found = (speed for run in runs if (speed := _speed(store, run)))
            return next(found, None), ""
    except StoreError as error:
        return None, str(error)


def _is_of(run: Run, path: PurePath, hosts: Collection[str]) -> bool:
    asked = run.request
    here = run.deployment is None and not run.environments
    rated = not asked.probes or _rater() in asked.probes
    at = not hosts or run.host in hosts or run.host.partition(".")[0] in hosts
    return here and rated and at and asked.scratch.is_relative_to(path)


def _speed(store: Store, run: Run) -> StorageSpeed | None:
    """None of a run that did not come to it."""
    from flowos.operations.measure import report_of

    measured = report_of(run, store.samples(run)).measurements
    rates = {_workload(each): each.value for each in measured if _is_sequential(each)}
    if not rates:
        return None
    return StorageSpeed(
        run=run.id,
        host=run.host,
        folder=run.request.scratch,
        read_bytes_per_second=rates.get("sequential read"),
        write_bytes_per_second=rates.get("sequential write"),
    )


def _workload(measured: Measurement) -> str:
    return measured.case.level("workload")


def _is_sequential(measured: Measurement) -> bool:
    is_rate = (measured.case.probe, measured.metric) == (_rater(), "bandwidth")
    return is_rate and _workload(measured).startswith("sequential ")
