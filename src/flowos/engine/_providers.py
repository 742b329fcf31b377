"""The providers by kind of pool; one for each pool, as all slices of the process share it."""

from collections.abc import Callable
from functools import cache

from flowos.engine._fake_provider import FakeProvider
from flowos.engine._local_provider import LocalProvider
from flowos.engine._provider import Provider
from flowos.model import Pool, PoolKind, SliceRefused

PROVIDERS: dict[PoolKind, Callable[[Pool], Provider]] = {
    "local": LocalProvider,
    "fake": FakeProvider,
}


@cache
def provider_of(pool: Pool) -> Provider:
    """What holds this pool's nodes. Raises SliceRefused for a fake pool's script with an error."""
    try:
        return PROVIDERS[pool.kind](pool)
    except ValueError as error:
        raise SliceRefused(f"pool {pool.name}: {error}") from error
