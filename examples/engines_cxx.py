"""A task in C++: compiled when it first runs, called without the lock of Python."""

import numpy as np

import flowos as fo

SAXPY = """
#include <cstdint>
extern "C" int saxpy(double a, const float* x, const float* y, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(a) * x[i] + y[i];
  return 0;
}
"""

vector = fo.array(fo.float32, ("n",))
saxpy = fo.cxx(
    SAXPY,
    "saxpy",
    inputs={"a": fo.float64, "x": vector, "y": vector},
    outputs={"out": vector},
)

x, y = fo.flow_input("x", vector), fo.flow_input("y", vector)
with fo.slice(fo.flow_output(saxpy(3.0, x, saxpy(2.0, x, y)))) as s:
    (out,) = s.run(np.arange(3, dtype=np.float32), np.ones(3, np.float32))
    print(out)  # [ 1.  6. 11.]
    try:
        s.run(np.ones(3, np.float32), np.ones(4, np.float32))
    except fo.ValueRefused as refused:
        print(refused)  # task 'saxpy', input 'y': extent 'n' is 4, and 3 in input 'x'
