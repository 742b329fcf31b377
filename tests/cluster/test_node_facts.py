"""What a node of the cluster is, is read by a step on it."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from .box import Box

FLOWOS = str(Path(sys.executable).with_name("flowos"))


def test_a_node_of_a_pool_is_looked_at_by_doctor(machines: Box, tmp_path: Path) -> None:
    settings = tmp_path / "flowos.toml"
    settings.write_text(f'[pools.c]\nkind = "slurm"\nnodes = 2\nshared = "{machines.shared}"\n')
    done = subprocess.run(
        (*machines.enter, FLOWOS, "doctor", "--pool", "c", "--scratch", "/tmp", "--json"),
        env={**os.environ, **machines.variables, "FLOWOS_CONFIG": str(settings)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)["facts"]
    assert (facts["host"], facts["kernel"]) == ("n1", platform.release())
    assert facts["cpu_model"]
    assert facts["memory_bytes"] > 0
    assert len({cpu["core"] for cpu in facts["cpus"]}) >= 1
    assert machines.ask("squeue", "--noheader") == ""
