"""`flowos pools`: the pools of flowos.toml, and what there is of each."""

from flowos._dataclasses import dataclass, replace
from flowos.engine import here, provider_of
from flowos.model import (
    FlowosError,
    NodeInfo,
    Pool,
    PoolStorage,
    PoolUser,
    Promise,
    SliceRefused,
    UsageError,
    VmSize,
    merged,
)
from flowos.operations._pool_kinds import kind_of_pool
from flowos.operations.environment import environment
from flowos.operations.pool_storage import check_folder, storage_of
from flowos.operations.settings import no_pool
from flowos.operations.settings_file import load_settings, settings_layers
from flowos.operations.vm_sizes import size_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """A pool, and after a check its nodes, or why it cannot be used.

    users: of a cluster's nodes; not_accounted: why it is not known what they used. size: what the
    catalogue says of its nodes; promises: that and what each node has, by its name.
    """

    pool: Pool
    nodes: tuple[NodeInfo, ...] = ()
    refused: str = ""
    users: tuple[PoolUser, ...] = ()
    not_accounted: str = ""
    storage: tuple[PoolStorage, ...] = ()
    size: VmSize | None = None
    promises: tuple[tuple[str, tuple[Promise, ...]], ...] = ()


def pools(
    name: str | None = None, *, check: bool = False, url: str | None = None
) -> tuple[PoolState, ...]:
    """The pools of the settings. name: of one alone. check: query the nodes of each. url: of the
    store, which has what was measured of their storage. Raises UsageError if none has the name.
    """
    found, said = load_settings(), merged(settings_layers())
    here().know_fpgas(found.fpgas)
    known = [pool for pool in found.pools if name in (None, pool.name)]
    if name is not None and not known:
        raise UsageError(no_pool(name, [pool.name for pool in found.pools]))
    states = (PoolState(pool=pool, size=size_of(pool, found.sizes, said)) for pool in known)
    return tuple(_checked(state, url) if check else state for state in states)


def _checked(state: PoolState, url: str | None) -> PoolState:
    pool = state.pool
    try:
        environment(pool.env)
        nodes = provider_of(pool).nodes()
        users, why = kind_of_pool(pool.kind).users(pool)
    except FlowosError as error:
        return replace(state, refused=str(error))
    size, refused = state.size, ""
    try:
        check_folder(pool)
    except SliceRefused as error:
        refused = str(error)
    return replace(
        state,
        nodes=nodes,
        users=users,
        not_accounted=why,
        storage=() if refused else storage_of(pool, nodes, url),
        refused=refused,
        promises=tuple((node.name, size.promises(node)) for node in nodes) if size else (),
    )
