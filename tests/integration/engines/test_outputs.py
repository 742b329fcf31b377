"""Outputs of native bodies: allocated for a call, and read after it."""

import numpy as np
import pytest

import flowos as fo
from flowos.engine.bodies._outputs import as_outputs, contiguous, empty_outputs
from flowos.model import PortMisfit, native_ports

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
    with pytest.raises(PortMisfit, match="extent 'n' is 5, and 4 in input 'b'"):
        empty_outputs(PORTS, [np.ones((4, 3), "f4"), np.ones(5, "f4")])


def test_only_what_has_strides_is_copied() -> None:
    wide, number = np.arange(6, dtype="f4"), np.array(1.0)
    values = contiguous([wide, wide[::2], number, 7])
    assert values[0] is wide
    assert values[1].flags.c_contiguous
    assert values[1].tolist() == [0, 2, 4]
    assert values[2] is number
    assert values[3] == 7
