"""One flow on several engines: C++ or OpenCL, whichever is faster, then Verilog, then Python."""

import os
from pathlib import Path

import numpy as np

import flowos as fo

os.environ.setdefault("FLOWOS_OPENCL_MEMORY", "own")  # also a CPU has its own: copies are seen
vector = fo.array(fo.uint32, ("n",))
in_cpp = fo.cxx(
    """
#include <cstdint>
extern "C" int triple(const uint32_t* x, int64_t n, uint32_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 3 * x[i];
  return 0;
}
""",
    "triple",
    inputs={"x": vector},
    outputs={"y": vector},
)
in_opencl = fo.opencl(
    """
__kernel void triple(__global const uint* x, long n, __global uint* y) {
  y[get_global_id(0)] = 3 * x[get_global_id(0)];
}
""",
    "triple",
    inputs={"x": vector},
    outputs={"y": vector},
)
add = fo.hdl(
    Path(__file__).with_name("add.v"),
    "add",
    inputs={"a": vector, "b": vector},
    outputs={"sum": vector},
    into={"s": ("a", "b")},
    out={"m": "sum"},
)


@fo.task
def total(v: vector) -> int:  # type: ignore[valid-type]
    return int(v.sum())  # type: ignore[attr-defined]


triple = fo.either(in_cpp, in_opencl)
x = fo.flow_input("x", vector)
flow = fo.flow_output(total(add(triple(triple(x)), x)))
values = np.arange(1000, dtype=np.uint32)

for engine in ("cpu", "opencl"):
    with fo.slice(flow, engines=(engine,)) as s:
        print(engine, s.run(values), s.plan(values), sep="\n")
with fo.slice(flow) as s:
    while s.plan(values).state == "measuring":
        s.run(values)
    print("chosen", s.run(values))  # s.plan(values) now shows times, too
