"""Tasks in OpenCL: on a CPU they work on NumPy's arrays where they lie, on a GPU those stay."""

import numpy as np

import flowos as fo

SAXPY = """
__kernel void saxpy(double a, __global const float* x, __global const float* y, long n,
                    __global float* out) {
  size_t i = get_global_id(0);
  out[i] = (float)a * x[i] + y[i];
}
"""

vector = fo.array(fo.float32, ("n",))
saxpy = fo.opencl(
    SAXPY,
    "saxpy",
    size="n",
    inputs={"a": fo.float64, "x": vector, "y": vector},
    outputs={"out": vector},
)

x, y = fo.flow_input("x", vector), fo.flow_input("y", vector)
with fo.slice(fo.flow_output(saxpy(3.0, x, saxpy(2.0, x, y)))) as s:
    (out,) = s.run(np.arange(3, dtype=np.float32), np.ones(3, np.float32))
    print(out)  # [ 1.  6. 11.]
