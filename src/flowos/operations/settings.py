"""The page of flowos.toml, and which pool a name is."""

import json
import os
from collections.abc import Collection, Iterator

from flowos._dataclasses import MISSING, dataclass, fields
from flowos.model import (
    Pool,
    Price,
    SaidSetting,
    SliceRefused,
    StorageTier,
    UsageError,
    cloud_fields,
    did_you_mean,
    fpga_fields,
    merged,
    pool_fields,
    read_layers,
    said_settings,
    size_fields,
    unused_variables,
)
from flowos.operations.settings_file import (
    NAME,
    load_settings,
    settings_layers,
    settings_names,
)

_PAGE = """\
# flowos.toml

`flowos.toml` defines the pools of your nodes, and the clouds that a Slurm cluster's machines come
from. Each key has the value that the first of these says:

1. the command line: `flowos --set pools.local.cores=2 COMMAND`,
2. the variable of its name: `FLOWOS_POOLS_LOCAL_CORES=2`, with `_` for each sign that is no
   letter or digit, of a table that a file has, or of `local`; where
   its key is misspelt, that is an error,
3. `flowos.toml` in the current folder,
4. `$XDG_CONFIG_HOME/flowos/flowos.toml`, or `~/.config/flowos/flowos.toml`.

A file that the variable `FLOWOS_CONFIG` names is read in place of both files. `flowos config`
shows each value and where it comes from, with `--all` the defaults too.

Without a file there is one pool, `local`: this machine. `flowos pools` shows the pools, `flowos
pools --check` queries the nodes of each, `flowos pools --schema` prints a JSON Schema of the file.

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

What a site promises of its storage: `flowos pools --check` shows it next to what is seen, and next
to the speed that the last `flowos measure --only fio` in that folder measured. It says where
nothing was measured, and the command that does. The own storage of nodes is looked at on one of
them, held for a moment, if one is free.

```toml
[pools.hpc]
kind = "slurm"
shared = "/gpfs/project"
scratch = "/local"

[pools.hpc.shared_tier]
capacity_bytes = 100_000_000_000_000
read_bytes_per_second = 5e9
write_bytes_per_second = 3e9
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

_FPGAS = """\
An FPGA of this machine: tasks with `Needs(devices={"fpga": 1})` get one, and `flowos device` loads
it. See [devices.md](devices.md).

```toml
[fpgas.arty]
address = "10.0.0.7:2542"

[fpgas.ulx3s]
board = "ulx3s"
```
"""


_TABLES = ("cloud", "fpgas", "pools", "sizes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsInForce:
    """What counts. files: their names. unused_variables: named as settings, of none there is."""

    files: str
    said: tuple[SaidSetting, ...]
    unused_variables: tuple[str, ...]


def settings_in_force(*, defaults: bool = False) -> SettingsInForce:
    """Raises SettingsError for a mistake. defaults: with those of what the tables leave out."""
    layers = settings_layers()
    read_layers(layers)
    return SettingsInForce(
        files=settings_names(),
        said=tuple(said_settings(merged(layers), defaults=defaults)),
        unused_variables=(*unused_variables(os.environ, merged(layers)), *_misspelt()),
    )


def _misspelt() -> Iterator[str]:
    """Variables of a table, a name and a key whose table is nearly one that there is."""
    for name in sorted(os.environ):
        prefix, top, *rest = (*name.lower().split("_", 3), "", "")[:4]
        if prefix == "flowos" and all(rest) and top not in _TABLES and did_you_mean(top, _TABLES):
            yield name


class UnknownPool(SliceRefused, UsageError):  # noqa: N818 - as the others that refuse
    """No pool has this name."""


def pool_named(name: str) -> Pool:
    """A pool by name. Raises UnknownPool if there is none, SettingsError for a mistake."""
    if not isinstance(name, str):
        raise SliceRefused(f"slice: pool={name!r:.80}; expected the name of a pool")
    pools = {pool.name: pool for pool in load_settings().pools}
    if name in pools:
        return pools[name]
    raise UnknownPool(no_pool(name, pools))


def no_pool(name: str, pools: Collection[str]) -> str:
    """The complaint; pools: their names."""
    near, files = did_you_mean(name, pools), settings_names()
    none, known = f"no pool {name!r:.80} in", ", ".join(pools)
    if not files:
        return f"{none} {NAME}, which is not there; pools are {known}{near}"
    return f"{none} {files}{near or f'; its pools are {known}'}"


def settings_page() -> str:
    """The page of the documentation, generated from the dataclasses of the settings."""
    rows = [_row(f.name, f.default, f.metadata["doc"]) for f in pool_fields()]
    parts = (("price", Price), ("shared_tier", StorageTier), ("scratch_tier", StorageTier))
    rows += [
        _row(f"{key}.{f.name}", f.default, f.metadata["doc"])
        for key, part in parts
        for f in fields(part)
    ]
    clouds = [_row(f.name, f.default, f.metadata["doc"]) for f in cloud_fields()]
    sizes = [_row(f.name, f.default, f.metadata["doc"]) for f in size_fields()]
    fpgas = [_row(f.name, f.default, f.metadata["doc"]) for f in fpga_fields()]
    line = "| --- | --- | --- |"
    return "\n".join(
        (
            _PAGE,
            *("| key of `[pools.NAME]` | default | says |", line, *rows, ""),
            _SIZES,
            *("| key of `[sizes.NAME]` | default | says |", line, *sizes, ""),
            _FPGAS,
            *("| key of `[fpgas.NAME]` | default | says |", line, *fpgas, ""),
            "Machines for the nodes that Slurm powers up: see [cloud.md](cloud.md).",
            *("", "| key of `[cloud.NAME]` | default | says |", line, *clouds, ""),
        )
    )


def _row(name: str, default: object, doc: str) -> str:
    written = json.dumps(default) if isinstance(default, str | bool) else str(default)
    words = "" if default in (None, MISSING, ()) else f"`{written}`"
    return f"| `{name}` | {words} | {doc} |"
