"""compile_flow: whatever the flow, its stages computed in any allowed order give its values."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowos.model as m
from flowos.model import (
    Constant,
    Flow,
    Needs,
    Port,
    Python,
    command,
    flow_input,
    flow_output,
    task,
)
from flowos.plan import Fuse, Schedule, Stage, compile_flow


@task
def add(x: int, y: int) -> int:
    return x + y


@task(needs=Needs(cores=2))
def wide(x: int) -> int:
    return 3 * x


@task
def divide(x: int, y: int) -> tuple[int, int]:
    return divmod(x, y)


@task(retries=1)
def again(x: int) -> int:
    return x - 1


@task(limit_seconds=5)
def limited(x: int) -> int:
    return 2 * x


@task(cache=True)
def cached(x: int) -> int:
    return x + 3


TASKS = (add, wide, divide, again, limited, cached)


def apply(made: m.Task, values: Sequence[Any]) -> Sequence[Any]:
    """A task's results by plain recursion, as the definition of what a flow means."""
    if isinstance(made.body, Flow):
        return naive(made.body, values)
    assert isinstance(made.body, Python)
    result = made.body.fun(*values)
    return result if len(made.outputs) > 1 else (result,)


def naive(flow: Flow, values: Sequence[Any]) -> list[Any]:
    known: dict[tuple[object, int], Any] = {
        (p, 0): v for p, v in zip(flow.inputs, values, strict=True)
    }

    def value(argument: Port | Constant) -> Any:
        if isinstance(argument, Constant):
            return argument.value
        return known[argument.call or argument, argument.index]

    for call in flow.calls:
        for i, result in enumerate(apply(call.task, [value(a) for a in call.arguments])):
            known[call, i] = result
    return [value(p) for p in flow.outputs]


def run_stage(stage: Stage, values: Sequence[Any]) -> list[Any]:
    frame = [*values, *stage.constants]
    for step in stage.steps:
        results = apply(step.task, [frame[i] for i in step.inputs])
        for register, result in zip(step.outputs, results, strict=True):
            frame[register] = result
    return [frame[i] for i in stage.returns]


def run_schedule(schedule: Schedule, values: Sequence[Any], order: random.Random) -> list[Any]:
    """Run ready stages in any order; a slot dropped too early is missed."""
    slots: dict[int, Any] = {**dict(enumerate(values)), **dict(schedule.presets)}
    waits = [stage.n_predecessors for stage in schedule.stages]
    readers = dict(schedule.readers)
    ready = list(schedule.ready)
    while ready:
        stage = schedule.stages[ready.pop(order.randrange(len(ready)))]
        results = run_stage(stage, [slots[s] for s in stage.inputs])
        slots.update(zip(stage.outputs, results, strict=True))
        for slot in stage.frees:
            del slots[slot]
        for slot in stage.refcounted:
            readers[slot] -= 1
            if readers[slot] == 0:
                del slots[slot]
        for number in stage.successors:
            waits[number] -= 1
            if waits[number] == 0:
                ready.append(number)
    assert not any(waits)
    kept = set(schedule.outputs) | set(range(len(values)))
    assert set(slots) <= kept, "every other value was dropped by its last reader"
    return [slots[s] for s in schedule.outputs]


@st.composite
def flows(draw: st.DrawFn, depth: int = 1) -> Flow:
    ports = [flow_input(f"in{i}", m.int64) for i in range(draw(st.integers(1, 3)))]
    inner = [draw(flows(depth=depth - 1)) for _ in range(draw(st.integers(0, depth)))]
    for _ in range(draw(st.integers(0, 9))):
        made: Any = draw(st.sampled_from([*TASKS, *inner]))
        inputs = made.inputs
        chosen = [draw(st.sampled_from(ports) | st.integers(1, 9)) for _ in inputs]
        if made is divide:
            chosen[1] = draw(st.integers(1, 9))
        results = made(*chosen)
        ports.extend(results if isinstance(results, tuple) else [results])
    return flow_output(*draw(st.lists(st.sampled_from(ports), min_size=1, max_size=4)))


@pytest.mark.parametrize("fuse", ["chains", "all", "none"])
@settings(max_examples=40)
@given(flow=flows(), seed=st.integers(0, 9), data=st.data())
def test_any_order_of_units_gives_the_values_of_the_flow(
    fuse: Fuse, flow: Flow, seed: int, data: st.DataObject
) -> None:
    values = [data.draw(st.integers(-50, 50)) for _ in flow.inputs]
    schedule = compile_flow(flow, fuse=fuse)
    assert run_schedule(schedule, values, random.Random(seed)) == naive(flow, values)
    assert sum(len(stage.steps) for stage in schedule.stages) == count(flow)
    assert len({s.label for stage in schedule.stages for s in stage.steps}) == count(flow)


def count(flow: Flow) -> int:
    return sum(count(c.task.body) if isinstance(c.task.body, Flow) else 1 for c in flow.calls)


def chain(length: int) -> Flow:
    port = flow_input("a", m.int64)
    for _ in range(length):
        port = add(port, 1)
    return flow_output(port)


def test_a_chain_becomes_one_unit_of_few_registers() -> None:
    (stage,) = compile_flow(chain(1000)).stages
    assert len(stage.steps) == 1000
    assert len(stage.constants) < 1100 - 99, "a constant each, and no register per result"
    assert len({s.outputs for s in stage.steps}) == 1
    assert stage.label == "add .. add#1000"


def test_large_values_do_not_pile_up_in_a_chain() -> None:
    port = flow_input("a", m.int64)
    for _ in range(100):
        port = wide(port)
    (stage,) = compile_flow(flow_output(port)).stages
    assert len(stage.inputs) + len(stage.constants) == 1


def test_results_that_nobody_reads_do_not_pile_up_in_a_chain() -> None:
    port = flow_input("a", m.int64)
    for _ in range(100):
        port, _unread = divide(port, port)
    (stage,) = compile_flow(flow_output(port)).stages
    assert len(stage.inputs) + len(stage.constants) == 2


def test_tasks_of_other_needs_and_commands_are_not_fused() -> None:
    a = flow_input("a", m.int64)
    assert len(compile_flow(flow_output(wide(add(a, 1)))).stages) == 2
    text = command(["echo", m.In("x")], inputs={"x": m.int64})(add(a, 1))
    schedule = compile_flow(flow_output(text), fuse="all")
    assert [stage.label for stage in schedule.stages] == ["add", "echo"]


def test_a_fork_is_not_fused() -> None:
    first = add(flow_input("a", m.int64), 1)
    schedule = compile_flow(flow_output(add(first, 2), add(first, 3)))
    assert [stage.n_predecessors for stage in schedule.stages] == [0, 1, 1]
    assert schedule.stages[0].successors == (1, 2)
    assert schedule.readers == {schedule.stages[0].outputs[0]: 2}


def test_for_one_place_all_python_tasks_are_one_stage() -> None:
    a = flow_input("a", m.int64)
    flow = flow_output(*(wide(add(a, i)) for i in range(50)))
    (stage,) = compile_flow(flow, fuse="all").stages
    assert len(stage.steps) == 100


def test_a_flow_of_inputs_only_has_no_stages() -> None:
    a = flow_input("a", m.int64)
    for fuse in ("chains", "all", "none"):
        schedule = compile_flow(flow_output(a, a), fuse=fuse)
        assert (schedule.stages, schedule.outputs) == ((), (0, 0))


def test_a_constant_that_a_flow_passes_through_is_an_output() -> None:
    x = flow_input("x", m.int64)
    outer = flow_output(flow_output(x)(7))
    assert compile_flow(outer).presets == ((0, 7),)


def test_tasks_of_flows_used_as_tasks_are_named_by_their_path() -> None:
    x = flow_input("x", m.int64)
    inner = flow_output(add(add(x, 1), 1), name="two")
    outer = flow_output(inner(inner(flow_input("a", m.int64))))
    labels = [s.label for stage in compile_flow(outer, fuse="none").stages for s in stage.steps]
    assert labels == ["two/add", "two/add#2", "two#2/add", "two#2/add#2"]
