"""A task in Verilog, simulated by Verilator: two arrays go in as one AXI stream, one comes out."""

from pathlib import Path

import numpy as np

import flowos as fo

vector = fo.array(fo.uint32, ("n",))
add = fo.hdl(
    Path(__file__).with_name("add.v"),
    "add",
    inputs={"a": vector, "b": vector},
    outputs={"sum": vector},
    into={"s": ("a", "b")},
    out={"m": "sum"},
)

a, b = fo.flow_input("a", vector), fo.flow_input("b", vector)
with fo.slice(fo.flow_output(add(a, add(a, b)))) as s:
    (total,) = s.run(np.arange(4, dtype=np.uint32), np.full(4, 10, np.uint32))
    print(total)  # [10 12 14 16]
