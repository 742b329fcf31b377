"""The copies that a slice's plan lists are those that its run makes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo

VECTOR = fo.array(fo.uint32, ("n",))
PORTS: Any = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
IN_C = """
#include <cstdint>
extern "C" int triple(const uint32_t* x, int64_t n, uint32_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 3 * x[i];
  return 0;
}
"""
IN_OPENCL = """
__kernel void triple(__global const uint* x, long n, __global uint* y) {
  y[get_global_id(0)] = 3 * x[get_global_id(0)];
}
"""
CPP: Any = fo.cxx(IN_C, "triple", **PORTS)
OPENCL: Any = fo.opencl(IN_OPENCL, "triple", **PORTS)
BOTH: Any = fo.either(CPP, OPENCL)
VALUES = np.arange(1000, dtype=np.uint32)


@fo.task
def same(v: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return v


def chain(*tasks: Any) -> Callable[[Any], Any]:
    def of(port: Any) -> Any:
        for task in tasks:
            port = task(port)
        return fo.flow_output(port)

    return of


def branches(port: Any) -> Any:
    made = OPENCL(port)
    return fo.flow_output(same(made), OPENCL(made))


def both_read(port: Any) -> Any:
    made = BOTH(port)
    return fo.flow_output(made, BOTH(BOTH(made)), OPENCL(made))


FLOWS = {
    "cxx": (chain(CPP, CPP), "cpu"),
    "opencl": (chain(OPENCL), "opencl"),
    "cxx, opencl, cxx": (chain(CPP, OPENCL, CPP), None),
    "forced cpu": (chain(BOTH, BOTH), ("cpu",)),
    "forced opencl": (chain(BOTH, same, BOTH), ("opencl",)),
    "three and one": (chain(BOTH, BOTH, BOTH, CPP), ("opencl",)),
    "three and one, chosen": (chain(BOTH, BOTH, BOTH, CPP), None),
    "cxx first, chosen": (chain(CPP, BOTH, OPENCL), None),
    "branches": (branches, None),
    "both read": (both_read, None),
}


@pytest.fixture(autouse=True)
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A CPU that is treated as a device with memory of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FLOWOS_OPENCL_MEMORY", "own")
    from flowos.engine.bodies._opencl_engine import opencl_engine

    return opencl_engine()


@pytest.mark.parametrize("workers", ["inline", "thread"])
@pytest.mark.parametrize("name", FLOWS)
def test_a_plan_lists_the_copies_that_the_run_makes(name: str, workers: Any, device: Any) -> None:
    made, engines = FLOWS[name]
    allowed = engines if isinstance(engines, tuple) else None
    flow = made(fo.flow_input("x", VECTOR))
    with fo.slice(flow, workers=workers, engines=allowed) as opened:
        for _ in range(12):
            plan = opened.plan(VALUES)
            before = device.copies_in, device.copies_out
            opened.run(VALUES)
            moved = device.copies_in - before[0], device.copies_out - before[1]
            into = [each for each in plan.copies if each.target == "opencl"]
            assert moved == (len(into), len(plan.copies) - len(into)), str(plan)
            assert {each.bytes for each in plan.copies} <= {VALUES.nbytes}
            assert not plan.unknown
            assert len(plan.tasks) == len(flow.calls)
    named = [each for each in plan.copies if each.source == "opencl"]
    assert all(each.value.endswith(".y") for each in named)
    if engines == "opencl" or allowed == ("opencl",):
        assert into


def test_the_plan_has_the_engine_of_each_task_also_where_some_have_one(device: Any) -> None:
    assert device.memory == "own"
    flow = chain(CPP, BOTH, same, OPENCL)(fo.flow_input("x", VECTOR))
    with fo.slice(flow, workers="inline") as opened:
        plan = opened.plan(VALUES)
        assert [(each.task, each.engine) for each in plan.tasks] == [
            ("triple", "cpu"),
            ("triple#2", "cpu"),
            ("same", "python"),
            ("triple#3", "opencl"),
        ]
        assert [(each.value, each.bytes) for each in plan.copies] == [
            ("triple#3.x", VALUES.nbytes),
            ("triple#3.y", VALUES.nbytes),
        ]


def test_a_plan_refuses_what_the_run_refuses() -> None:
    with (
        fo.slice(chain(BOTH)(fo.flow_input("x", VECTOR))) as opened,
        pytest.raises(fo.ValueRefused, match="given an array of float64") as caught,
    ):
        opened.plan(VALUES.astype(float))
    assert "input 'x': expected" in str(caught.value)


def test_an_engine_that_is_not_here_leaves_copies_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWOS_OPENCL_DEVICE", "opencl-none-7")
    with fo.slice(chain(OPENCL)(fo.flow_input("x", VECTOR))) as opened:
        plan = opened.plan(VALUES)
    (why,) = plan.unknown
    assert "opencl-none-7" in why
    assert "no copies" not in str(plan)


def test_an_array_on_a_device_is_given_by_dlpack_with_one_copy(device: Any) -> None:
    made: Any = OPENCL.body.fun.leaving(frozenset({0}))(VALUES)
    assert made.place == "opencl"
    before = device.copies_out
    first, second = np.from_dlpack(made), np.from_dlpack(made)
    assert (first == 3 * VALUES).all()
    assert first.ctypes.data == second.ctypes.data
    assert device.copies_out - before == 1


def test_a_way_to_memory_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWOS_OPENCL_MEMORY", "owns")
    never_run = chain(fo.opencl(IN_OPENCL, "triple", **PORTS))(fo.flow_input("v", VECTOR))
    with (
        pytest.raises(fo.TaskFailed, match="FLOWOS_OPENCL_MEMORY is 'owns': use shared, mapped or"),
        fo.slice(never_run, workers="inline") as held,
    ):
        held.run(VALUES)
