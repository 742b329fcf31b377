"""The providers by kind of pool; one for each pool, as all slices of the process share it."""

import threading
from collections.abc import Callable
from functools import cache

from flowos.engine._provider import Provider
from flowos.model import Pool, PoolKind


def _local(pool: Pool) -> Provider:
    from flowos.engine.local._local_provider import LocalProvider

    return LocalProvider(pool)


def _fake(pool: Pool) -> Provider:
    from flowos.engine.local._fake_provider import FakeProvider

    return FakeProvider(pool)


def _slurm(pool: Pool) -> Provider:
    from flowos.engine.slurm._slurm_provider import SlurmProvider

    return SlurmProvider(pool)


def _sge(pool: Pool) -> Provider:
    from flowos.engine.sge._sge_provider import SgeProvider

    return SgeProvider(pool)


PROVIDERS: dict[PoolKind, Callable[[Pool], Provider]] = {
    "local": _local,
    "fake": _fake,
    "slurm": _slurm,
    "sge": _sge,
}
"""Each is imported with its first pool: most programs use one kind."""

_first = threading.Lock()


def provider_of(pool: Pool) -> Provider:
    """What holds this pool's nodes."""
    with _first:
        return _provider_of(pool)


@cache
def _provider_of(pool: Pool) -> Provider:
    return PROVIDERS[pool.kind](pool)
