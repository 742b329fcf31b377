"""`flowos pools`: the pools of flowos.toml, its page, and which pool a name is."""

import difflib
import os
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import PurePath

from flowos.engine import provider_of, slurm_users
from flowos.model import (
    FlowosError,
    NodeInfo,
    Pool,
    PoolStorage,
    PoolUser,
    Price,
    Promise,
    SliceRefused,
    VmSize,
    cloud_fields,
    pool_fields,
    size_fields,
)
from flowos.operations.environment import environment
from flowos.operations.settings_file import NAME, load_settings, settings_file
from flowos.operations.vm_sizes import size_of

_PAGE = """\
# flowos.toml

`flowos.toml` defines the pools of your nodes, and the clouds that a Slurm cluster's machines come
from. FlowOS reads the first of these files that exists:

1. the file named by `FLOWOS_CONFIG`,
2. `flowos.toml` in the current folder,
3. `$XDG_CONFIG_HOME/flowos/flowos.toml`, or `~/.config/flowos/flowos.toml`.

Without a file there is one pool, `local`: this machine. `flowos pools` shows the settings, `flowos
pools --check` queries the nodes of each pool, `flowos pools --schema` prints a JSON Schema.

```toml
[pools.local]
cores = 4

[pools.test]
kind = "fake"
nodes = 3
script = ["wait 0.5 Priority", "lose 1 after 2"]
```

```python
with fo.slice(flow, pool="test", nodes=2) as s:
    s.run(1, 2)
with fo.slice(pool="test", nodes=2) as s:
    s.run(flow, 1, 2)
    s.resize(3)
```

A pool of [Grid Engine](sge.md) names a queue and a parallel environment that gives whole nodes:

```toml
[pools.hpc]
kind = "sge"
nodes = 8
queue = "all.q"
pe = "whole"
```

Nodes that are machines of a cloud: `flowos pools` shows what the catalogue says of their size,
`flowos pools --check` compares that with what each node has, and slices cost what the size does.

```toml
[pools.hpc]
kind = "slurm"
nodes = 8
size = "Standard_HB120rs_v3"
region = "japaneast"
```

There are no pools of PBS, LSF and HTCondor: for them FlowOS has command lines and readers of
answers alone (`drivers/allocators/`), tested on texts in their formats and never on a cluster.
"""

_SIZES = """\
A size that the catalogue of `flowos cloud sizes` lacks, or has wrong; it counts before what the
catalogue has of that name.

```toml
[sizes."hpc6a.48xlarge"]
vcpus = 96
memory_bytes = 412_316_860_416
price = 2.88
source = "our contract"
```
"""


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


def pool_named(name: str) -> Pool:
    """A pool by name. Raises SliceRefused if there is none, SettingsError for a mistake."""
    pools = {pool.name: pool for pool in load_settings().pools}
    if name in pools:
        return pools[name]
    near = difflib.get_close_matches(name, pools, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; its pools are {', '.join(pools)}"
    raise SliceRefused(f"slice: no pool {name!r} in {settings_file() or NAME}{hint}")


def pools(*, check: bool = False) -> tuple[PoolState, ...]:
    """The pools of the settings. check: query the nodes of each."""
    found, file = load_settings(), str(settings_file() or NAME)
    states = (PoolState(pool=pool, size=size_of(pool, found.sizes, file)) for pool in found.pools)
    return tuple(_checked(state) if check else state for state in states)


def settings_page() -> str:
    """The page of the documentation, generated from the dataclasses of the settings."""
    rows = [_row(f.name, f.default, f.metadata["doc"]) for f in pool_fields()]
    rows += [_row(f"price.{f.name}", f.default, f.metadata["doc"]) for f in fields(Price)]
    clouds = [_row(f.name, f.default, f.metadata["doc"]) for f in cloud_fields()]
    sizes = [_row(f.name, f.default, f.metadata["doc"]) for f in size_fields()]
    line = "| --- | --- | --- |"
    return "\n".join(
        (
            _PAGE,
            *("| key of `[pools.NAME]` | default | says |", line, *rows, ""),
            _SIZES,
            *("| key of `[sizes.NAME]` | default | says |", line, *sizes, ""),
            "Machines for the nodes that Slurm powers up: see [cloud.md](cloud.md).",
            *("", "| key of `[cloud.NAME]` | default | says |", line, *clouds, ""),
        )
    )


def _row(name: str, default: object, doc: str) -> str:
    words = "" if default in (None, MISSING, ()) else f"`{default}`"
    return f"| `{name}` | {words} | {doc} |"


def _checked(state: PoolState) -> PoolState:
    pool = state.pool
    try:
        environment(pool.env)
        nodes = provider_of(pool).nodes()
        users, why = slurm_users(pool) if pool.kind == "slurm" else ((), "")
    except FlowosError as error:
        return replace(state, refused=str(error))
    size = state.size
    return replace(
        state,
        nodes=nodes,
        users=users,
        not_accounted=why,
        storage=_storage(pool),
        promises=tuple((node.name, size.promises(node)) for node in nodes) if size else (),
    )


def _storage(pool: Pool) -> tuple[PoolStorage, ...]:
    """That of the pool's nodes is on them, not on this machine."""
    on_nodes = "on each node's own storage, which is not seen from here"
    scratch = [PoolStorage(key="scratch", path=PurePath(pool.scratch), complaint=on_nodes)]
    return (*([_seen(pool.shared)] * bool(pool.shared)), *(scratch * bool(pool.scratch)))


def _seen(path: str) -> PoolStorage:
    try:
        found = os.statvfs(path)
    except OSError as error:
        why = error.strerror or str(error)
        return PoolStorage(key="shared", path=PurePath(path), complaint=why)
    return PoolStorage(
        key="shared",
        path=PurePath(path),
        total_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
    )
