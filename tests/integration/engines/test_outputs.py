"""Outputs of native bodies: allocated for a call, and read after it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import flowos as fo
from flowos.engine.bodies._masks import refuse_masked
from flowos.engine.bodies._outputs import as_outputs, contiguous, empty_outputs
from flowos.model import PortIncompatible, native_ports
from tests.integration.engines.languages import needs_julia

PORTS = native_ports(
    "f",
    {"b": fo.array(fo.float32, ("n", 3)), "c": fo.array(fo.float32, ("n",))},
    {"a": fo.array(fo.int8, ("n", 2)), "s": fo.float64},
)


def test_outputs_are_as_extents_say_and_scalars_are_pythons() -> None:
    a, s = empty_outputs(PORTS, [np.ones((4, 3), "f4"), np.ones(4, "f4")])
    assert (a.shape, a.dtype, s.shape, s.dtype) == ((4, 2), np.int8, (), np.float64)
    s[()] = 2.5
    given = as_outputs(PORTS, [a, s])
    assert given[0] is a
    assert (type(given[1]), given[1]) == (float, 2.5)
    with pytest.raises(PortIncompatible, match="extent 'n' is 5, and 4 in input 'b'"):
        empty_outputs(PORTS, [np.ones((4, 3), "f4"), np.ones(5, "f4")])


def test_only_what_has_strides_is_copied() -> None:
    wide, number = np.arange(6, dtype="f4"), np.array(1.0)
    values = contiguous([wide, wide[::2], number, 7])
    assert values[0] is wide
    assert values[1].flags.c_contiguous
    assert values[1].tolist() == [0, 2, 4]
    assert values[2] is number
    assert values[3] == 7


def test_what_is_masked_is_refused_and_a_mask_without_a_truth_is_none() -> None:
    whole, holes = np.ma.array([1.0, 2.0]), np.ma.array([1, -9999, 2], mask=[False, True, False])
    refuse_masked(PORTS, [whole, np.ma.array([3.0], mask=[False])])
    with pytest.raises(PortIncompatible) as caught:
        refuse_masked(PORTS, [whole, holes])
    said = "input 'c': 1 of 3 values is masked: fill it, as with x.filled(0)"
    assert str(caught.value) == said


VECTOR = fo.array(fo.float64, ("n",))
C = """extern "C" int copy(const double* x, long n, double* y) {
  for (long i = 0; i < n; ++i) y[i] = x[i];
  return 0; }"""
CL = """__kernel void copy(__global const double* x, long n, __global double* y) {
  y[get_global_id(0)] = x[get_global_id(0)]; }"""
PORT: Any = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
BODIES: dict[str, Callable[[], Any]] = {
    "cxx": lambda: fo.cxx(C, "copy", **PORT),
    "opencl": lambda: fo.opencl(CL, "copy", size="n", **PORT),
    "r": lambda: fo.r("copy <- function(x) {\n x }", "copy", **PORT),
    "julia": lambda: fo.julia("copy_of(x) = x", "copy_of", **PORT),
}


@pytest.mark.parametrize("name", ["cxx", "opencl", "r", pytest.param("julia", marks=needs_julia)])
def test_no_native_body_takes_masked_values(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    flow = fo.flow_output(BODIES[name]()(fo.flow_input("x", VECTOR)))
    with fo.slice(flow, workers="thread") as opened:
        for whole in (np.ma.array([1.0, 2.0]), np.array([1.0, 2.0])):
            (found,) = cast("list[Any]", opened.run(whole))
            assert found.tolist() == [1.0, 2.0]
        with pytest.raises(fo.FlowosError, match=r"2 of 3 values are masked: .* x.filled\(nan\)"):
            opened.run(np.ma.array([1.0, 2.0, -9999.0], mask=[False, True, True]))
