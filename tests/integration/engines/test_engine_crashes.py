"""A crash in a body that is no C++: it ends its worker alone, and is named with its task."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from tests.moody import PORTS, failure, words

VECTOR = fo.array(fo.float32, ("n",))
NO_ADDRESS = """
__kernel void crash(__global const float* b, long n, __global float* a) {
  volatile __global float* nowhere = 0;
  *nowhere = b[0];
  a[0] = *nowhere;
}
"""
SIGNALLED = """module crash(input aclk, input aresetn, input [63:0] s_tdata, input s_tvalid,
  output s_tready, input s_tlast, output [31:0] m_tdata, output m_tvalid, input m_tready,
  output m_tlast);
assign s_tready = 1, m_tdata = 0, m_tvalid = 0, m_tlast = 0;
integer ended;
always @(posedge aclk) if (s_tvalid) ended = $system("kill -SEGV $PPID");
endmodule"""
CRASHED = "it was killed by signal 11 (SIGSEGV)"


def test_a_crash_in_opencl_ends_a_worker_and_names_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outputs: Any = {"a": VECTOR}
    task = fo.opencl(NO_ADDRESS, "crash", inputs={"b": VECTOR}, outputs=outputs)
    said = failure(task, np.ones(4, "f4"), workers="process")
    assert "'crash'" in said
    assert CRASHED in said


def test_a_crash_in_a_simulation_ends_a_worker_and_names_the_task() -> None:
    """A simulation shares the process of its worker, so what ends it ends that."""
    task = fo.hdl(SIGNALLED, "crash", **PORTS)
    said = failure(task, words(1, 2), words(3, 4), workers="process")
    assert "'crash'" in said
    assert CRASHED in said
