"""What a test runs inside a `Box` whose nodes are apart: a probe's program on both.

`python measures_over_nodes.py PROBE KEYS` holds two nodes; KEYS: of their pool, as JSON. Prints
what the probe reads of its last case, made short, as lines: metric, levels, first value.
"""

import json
import sys
from pathlib import Path

from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import (
    Ask,
    Facts,
    LogicalCpu,
    MeasurementRequest,
    Mpi,
    Pool,
    Tool,
    Unmeasured,
)
from flowos.operations.measure._environments import bare_on
from flowos.probes import package_data, probe_named
from flowos.probes._base import with_details

PYTHON = Path(sys.executable)
MPI = Mpi(name="MPICH", family="mpich", version="4", compiler=PYTHON, mpirun=PYTHON)
NODE = Facts(
    host="h",
    system="s",
    kernel="k",
    architecture="a",
    cpu_model="c",
    cpus=(LogicalCpu(number=0, core=0, socket=0, node=0),),
    allowed=(0,),
    mpis=(MPI,),
    tools=(Tool(name="torch", version="2", path=PYTHON),),
)
SHORT = {
    "training": {"images": "64", "epochs": "1", "workers": "0", "validation": "4"},
    "collectives": {"seconds": "0.1", "sizes": "8,65536"},
    "remote_copy": {"seconds": "0.1", "sizes": "4096,5242880"},
}


def main(name: str, keys: dict[str, str]) -> None:
    probe = probe_named(name)
    assert probe
    cases = probe.cases(NODE, MeasurementRequest(effort="quick", probes=(name,), nodes=2))
    assert not isinstance(cases, Unmeasured)
    case = with_details(cases[-1], **SHORT[name])
    program = probe.program(case)
    script = str(package_data("probes/programs").joinpath(program.script))
    words = (program.argv[0], script, *program.argv[1:])
    pool = Pool(name="two", **keys)  # type: ignore[arg-type]
    with HeldSlice(provider_of(pool), Ask(nodes=2), SliceOptions()) as held:
        first, _ = held.held.nodes
        place = bare_on(first, NODE, first.folder(), Path(keys["shared"]), nodes=2)
        outcome = place.run(words, program)
    found = probe.read(case, outcome)
    if isinstance(found, Unmeasured):
        sys.exit(f"{found.reason}: {outcome.stderr.decode(errors='replace')}")
    for each in found:
        levels = ",".join(level.replace(" ", "-") for _, level in each.levels)
        sys.stdout.write(f"{each.metric} {levels} {each.values[0]}\n")


main(sys.argv[1], json.loads(sys.argv[2]))
