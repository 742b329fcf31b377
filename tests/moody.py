"""A module of Verilog with moods (`data/hdl/moody.v`) as a task, and tasks run for a test."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo

DATA = Path(__file__).with_name("data") / "hdl"
MOODY = DATA / "moody.v"
SWALLOW, EARLY, ENDLESS, FINISH = 1000, 1001, 1002, 1003
WORDS = fo.array(fo.uint32, ("n",))
PORTS: Any = {
    "inputs": {"a": WORDS, "b": WORDS},
    "outputs": {"sum": WORDS},
    "into": {"s": ("a", "b")},
    "out": {"m": "sum"},
}


def moody(**options: Any) -> Any:
    return fo.hdl(MOODY, "moody", **{**PORTS, **options})


def run(task: Any, *values: object, **options: Any) -> list[Any]:
    inputs = [fo.flow_input(port.name, port.type) for port in task.inputs]
    with fo.slice(fo.flow_output(task(*inputs)), **{"workers": "inline", **options}) as opened:
        found: list[Any] = opened.run(*values)
    return found


def failure(task: Any, *values: object, **options: Any) -> str:
    with pytest.raises(fo.FlowosError) as caught:
        run(task, *values, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def words(*values: int) -> Any:
    return np.array(values, np.uint32)
