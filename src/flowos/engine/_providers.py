"""The providers by kind of pool; one for each pool, as all slices of the process share it."""

import threading
from collections.abc import Callable
from functools import cache

from flowos.engine._provider import Provider
from flowos.engine.local._fake_provider import FakeProvider
from flowos.engine.local._local_provider import LocalProvider
from flowos.engine.sge._sge_provider import SgeProvider
from flowos.engine.slurm._slurm_provider import SlurmProvider
from flowos.model import Pool, PoolKind

PROVIDERS: dict[PoolKind, Callable[[Pool], Provider]] = {
    "local": LocalProvider,
    "fake": FakeProvider,
    "slurm": SlurmProvider,
    "sge": SgeProvider,
}


_first = threading.Lock()


def provider_of(pool: Pool) -> Provider:
    """What holds this pool's nodes."""
    with _first:
        return _provider_of(pool)


@cache
def _provider_of(pool: Pool) -> Provider:
    return PROVIDERS[pool.kind](pool)
