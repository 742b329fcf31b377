"""The page of flowos.toml, and which pool a name is."""

import difflib
from dataclasses import MISSING, fields

from flowos.model import (
    Pool,
    Price,
    SliceRefused,
    StorageTier,
    cloud_fields,
    fpga_fields,
    pool_fields,
    size_fields,
)
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


def pool_named(name: str) -> Pool:
    """A pool by name. Raises SliceRefused if there is none, SettingsError for a mistake."""
    pools = {pool.name: pool for pool in load_settings().pools}
    if name in pools:
        return pools[name]
    near = difflib.get_close_matches(name, pools, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; its pools are {', '.join(pools)}"
    raise SliceRefused(f"slice: no pool {name!r} in {settings_file() or NAME}{hint}")


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
    words = "" if default in (None, MISSING, ()) else f"`{default}`"
    return f"| `{name}` | {words} | {doc} |"
