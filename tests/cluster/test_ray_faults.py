"""A Ray on two nodes that are apart ends by parts: no result is lost, a line says what ended."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS, comes

from .box import Box
from .test_box import processes_of, read_of

ENDS = Path(__file__).with_name("ends_ray.py")
POOL = '[pools.c]\nkind = "slurm"\nnodes = 2\nshared = "{shared}"\n'
CRASHED = r"its worker of Ray on n[12] is gone: it crashed or was killed"
LOST = r"its worker of Ray on (n1 is gone: its node is lost|n2 is gone: .*; attempt 2)"
BEFORE = rf"""nodes n1 n2
lost task 'dies_once': {CRASHED}
after \[\d+\]
again \[\d+\]
began n1 n2
"""
AFTER = rf"""results 4
moved True
lost task 'begins': {LOST}
lost task 'begins': all nodes of Ray are gone
freed
"""


def raylets(box: Box, node: str) -> list[int]:
    return [
        pid
        for pid in processes_of(box.folder)
        if read_of(pid, "cmdline").split(b"\0")[0].endswith(b"/raylet")
        if f"SLURMD_NODENAME={node}\0".encode() in read_of(pid, "environ")
    ]


def test_a_worker_a_raylet_and_the_last_node_of_ray_are_lost_and_no_result_is() -> None:
    """One Ray for all of them: it takes ten seconds to start."""
    pytest.importorskip("ray")
    with Box(apart=True) as box:
        settings = box.folder / "pools.toml"
        settings.write_text(POOL.format(shared=box.shared))
        words = (*box.enter, sys.executable, str(ENDS), str(settings), str(box.shared / "flags"))
        env = {**os.environ, **box.variables, "PYTHONPATH": str(Path(__file__).parents[2])}
        pipe = subprocess.PIPE
        with subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True) as program:
            assert program.stdout
            said = "".join(program.stdout.readline() for _ in BEFORE.splitlines())
            assert re.fullmatch(BEFORE, said), said
            (raylet,) = raylets(box, "n2")
            os.kill(raylet, signal.SIGKILL)
            said = program.communicate("\n", 4 * PATIENCE_SECONDS)[0]
            assert re.fullmatch(AFTER, said), said
        assert comes(lambda: box.ask("squeue", "--noheader") == "")
        assert comes(lambda: not [*raylets(box, "n1"), *raylets(box, "n2")])
