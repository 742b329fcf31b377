"""Figures of benchmarks/engines.py against what they have to reach."""

import runpy
from pathlib import Path
from typing import Any

import pytest

TARGETS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/_engine_targets.py"))
judged: Any = TARGETS["judged"]


def found(arrays: float, speedup: float) -> dict[str, Any]:
    works = {"task's function": {"median": 21.0}, "pyopencl": {"median": 20.0}}
    return {
        "check_us": {"arrays": {"median": arrays}},
        "two": {"speedup": speedup},
        "opencl": {"works_us": works},
    }


@pytest.mark.parametrize(
    ("arrays", "speedup", "holds"), [(0.7, 1.8, True), (0.71, 1.79, False), (0.1, 2.0, True)]
)
def test_a_figure_holds_up_to_its_target(arrays: float, speedup: float, holds: bool) -> None:
    seen = judged(found(arrays, speedup))
    assert seen["a task with arrays, us"] == {"at most": 0.7, "seen": arrays, "holds": holds}
    assert seen["2 C++ tasks at once, times"] == {"at least": 1.8, "seen": speedup, "holds": holds}
    more = seen["OpenCL, us that a call works more than pyopencl's"]
    assert more == {"at most": 2.0, "seen": 1.0, "holds": True}


def test_what_was_not_measured_has_its_target_alone() -> None:
    assert judged({})["empty tasks, inline, wide, of StarPU"] == {"at most": 1.0}
