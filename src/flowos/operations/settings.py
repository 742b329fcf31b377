"""`flowos pools`: the pools of flowos.toml, its page, and which pool a name is."""

import difflib
from dataclasses import MISSING, dataclass, fields

from flowos.engine import provider_of
from flowos.model import (
    FlowosError,
    NodeInfo,
    Pool,
    Price,
    SliceRefused,
    cloud_fields,
    pool_fields,
)
from flowos.operations.environment import environment
from flowos.operations.settings_file import NAME, load_settings, settings_file

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

A pool of Grid Engine names a queue and a parallel environment that gives whole nodes:

```toml
[pools.hpc]
kind = "sge"
nodes = 8
queue = "all.q"
pe = "whole"
```

There are no pools of PBS, LSF and HTCondor: for them FlowOS has command lines and readers of
answers alone (`drivers/allocators/`), tested on texts in their formats and never on a cluster.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """A pool, and after a check its nodes, or why it cannot be used."""

    pool: Pool
    nodes: tuple[NodeInfo, ...] = ()
    refused: str = ""


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
    found = load_settings().pools
    return tuple(_checked(pool) if check else PoolState(pool=pool) for pool in found)


def settings_page() -> str:
    """The page of the documentation, generated from the dataclasses of the settings."""
    rows = [_row(f.name, f.default, f.metadata["doc"]) for f in pool_fields()]
    rows += [_row(f"price.{f.name}", f.default, f.metadata["doc"]) for f in fields(Price)]
    clouds = [_row(f.name, f.default, f.metadata["doc"]) for f in cloud_fields()]
    line = "| --- | --- | --- |"
    return "\n".join(
        (
            _PAGE,
            *("| key of `[pools.NAME]` | default | says |", line, *rows, ""),
            "Machines for the nodes that Slurm powers up: see [cloud.md](cloud.md).",
            *("", "| key of `[cloud.NAME]` | default | says |", line, *clouds, ""),
        )
    )


def _row(name: str, default: object, doc: str) -> str:
    words = "" if default in (None, MISSING, ()) else f"`{default}`"
    return f"| `{name}` | {words} | {doc} |"


def _checked(pool: Pool) -> PoolState:
    try:
        environment(pool.env)
        return PoolState(pool=pool, nodes=provider_of(pool).nodes())
    except FlowosError as error:
        return PoolState(pool=pool, refused=str(error))
