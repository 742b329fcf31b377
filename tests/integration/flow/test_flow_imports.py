"""What a program with a flow loads before its first result: counted, for a time hangs on the
machine."""

import subprocess
import sys

PROGRAM = """\
import sys
import flowos as fo
@fo.task
def add(x: fo.int64) -> fo.int64:
    return x + 1
with fo.slice(add(fo.flow_input("x", fo.int64))) as s:
    s.run(1)
print(*sys.modules)
"""
MAX_MODULES = 125
"""Of FlowOS. Each costs between 0.2 and 2 ms."""
UNUSED = {
    *(f"flowos.model.{part}" for part in ("_settings", "_samples", "_cloud", "_vm_size")),
    *("flowos.probes", "flowos.report", "hashlib", "multiprocessing", "numpy", "secrets"),
}


def test_a_slice_of_threads_loads_no_settings_and_no_measuring() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = {*done.stdout.split()}
    ours = {name for name in loaded if name.partition(".")[0] == "flowos"}
    assert len(ours) <= MAX_MODULES, sorted(ours)
    assert not loaded & UNUSED
