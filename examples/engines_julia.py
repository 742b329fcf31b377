"""A task in Julia: a process of Julia runs it, with arrays that have the same [i, j] there."""

from typing import Any

import numpy as np

import flowos as fo

FIT = r"""
using LinearAlgebra

function fit(x, y)
    columns = [ones(size(x, 1)) x]
    found = columns \ y
    left = y - columns * found
    (slopes = found[2:end], r2 = 1 - left ⋅ left / sum(abs2, y .- sum(y) / length(y)))
end
"""

rows, column = fo.array(fo.float64, ("n", "m")), fo.array(fo.float64, ("n",))
fit = fo.julia(
    FIT,
    "fit",
    inputs={"x": rows, "y": column},
    outputs={"slopes": fo.array(fo.float64, ("m",)), "r2": fo.float64},
)

x, y = fo.flow_input("x", rows), fo.flow_input("y", column)
slopes, r2 = fit(x, y)
with fo.slice(fo.flow_output(slopes, r2)) as s:
    measured = np.array([[1.0, 5.0], [2.0, 3.0], [3.0, 8.0], [4.0, 1.0]])
    found: Any
    found, quality = s.run(measured, measured @ np.array([2.0, -1.0]) + [0.5, 0.0, 0.0, 0.5])
    print(found.round(3), f"{quality:.3f}")  # [ 1.964 -1.051] 0.997
