"""What a worker is sent of FlowOS is enough where FlowOS is not installed."""

import marshal
import subprocess
import sys

from flowos.engine.workers._worker_process import _ELSEWHERE, _modules

LOADS = """
import importlib.util, marshal, sys, types
assert importlib.util.find_spec("flowos") is None
for name, code in marshal.load(sys.stdin.buffer).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(marshal.loads(code), module.__dict__)
"""


def test_a_python_without_flowos_loads_all_of_it() -> None:
    words = (sys.executable, "-I", "-S", "-c", LOADS)
    sent = marshal.dumps(_modules(_ELSEWHERE))
    loaded = subprocess.run(words, input=sent, capture_output=True)
    assert (loaded.returncode, loaded.stderr.decode()) == (0, "")
