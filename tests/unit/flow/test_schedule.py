"""compile_flow: whatever the flow, its stages computed in any allowed order give its values."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import flowos.model as m
from flowos.model import (
    Cond,
    Constant,
    Flow,
    Loop,
    Needs,
    Port,
    Python,
    command,
    cond,
    flow_input,
    flow_output,
    loop,
    task,
)
from flowos.plan import Fuse, Schedule, Stage, Step, compile_flow


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


@task
def odd(x: int) -> bool:
    return x % 2 == 1


@task
def large(x: int) -> bool:
    return x * x > 100


TASKS = (add, wide, divide, again, limited, cached)


def apply(made: m.Task, values: Sequence[Any]) -> Sequence[Any]:
    """A task's results by plain recursion, as the definition of what a flow means."""
    if isinstance(made.body, Flow):
        return naive(made.body, values)
    if isinstance(made.body, Cond):
        which = 0 if values[0] else 1
        return naive(made.body.flows[which], [values[i] for i in made.body.takes[which]])
    if isinstance(made.body, Loop):
        return repeated(made.body, partial(naive, made.body.flows[0]), values)  # type: ignore[no-any-return]
    assert isinstance(made.body, Python)
    result = made.body.fun(*values)
    return result if len(made.outputs) > 1 else (result,)


def repeated(loop: Loop, run: Callable[[Sequence[Any]], list[Any]], values: Sequence[Any]) -> Any:
    for _ in range(loop.max_rounds):
        results = run(values)
        if loop.until and results.pop():
            return results
        values = [*results[: loop.state], *values[loop.state :]]
    if loop.until:
        raise m.RoundLimitExceeded
    return results


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


def run_stage(stage: Stage, values: Sequence[Any], order: random.Random) -> list[Any]:
    frame = [*values, *stage.constants]
    for step in stage.steps:
        given = [frame[i] for i in step.inputs]
        if step.inner:
            flows = [partial(run_stage, inner, order=order) for inner in step.inner]
        else:
            flows = [partial(run_schedule, inner, order=order) for inner in stage.flows]
        results = run_control(step.task.body, flows, given) if flows else apply(step.task, given)
        for register, result in zip(step.outputs, results, strict=True):
            frame[register] = result
    return [frame[i] for i in stage.returns]


def run_control(body: m.Body, flows: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    if isinstance(body, Loop):
        return repeated(body, flows[0], values)  # type: ignore[no-any-return]
    assert isinstance(body, Cond)
    which = 0 if values[0] else 1
    return flows[which]([values[i] for i in body.takes[which]])  # type: ignore[no-any-return]


def run_schedule(
    schedule: Schedule,
    values: Sequence[Any],
    order: random.Random,
    kept: frozenset[int] = frozenset(),
) -> list[Any]:
    """Run ready stages in any order; a slot dropped too early is missed. kept: inputs that stay."""
    slots: dict[int, Any] = {**dict(enumerate(values)), **dict(schedule.presets)}
    stages = {stage.number: stage for stage in schedule.stages}
    waits = dict(schedule.predecessors)
    readers = dict(schedule.readers)
    ready = list(schedule.ready)
    while ready:
        stage = stages[ready.pop(order.randrange(len(ready)))]
        results = run_stage(stage, [slots[s] for s in stage.inputs], order)
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
    assert not any(waits.values())
    unread = set(range(len(values))) - {slot for each in schedule.stages for slot in each.inputs}
    outputs = set(schedule.outputs)
    assert set(slots) <= kept | outputs | unread, "other values were dropped by their last readers"
    return [slots[s] for s in schedule.outputs]


@st.composite
def flows(draw: st.DrawFn, depth: int = 2) -> Flow:
    ports = [flow_input(f"in{i}", m.int64) for i in range(draw(st.integers(1, 3)))]
    inner = [draw(flows(depth=depth - 1)) for _ in range(draw(st.integers(0, depth)))]
    for _ in range(draw(st.integers(0, 9))):
        if depth and draw(st.integers(0, 3)) == 0:
            ports.extend(draw(controls(ports, depth)))
            continue
        made: Any = draw(st.sampled_from([*TASKS, *inner]))
        inputs = made.inputs
        chosen = [draw(st.sampled_from(ports) | st.integers(1, 9)) for _ in inputs]
        if made is divide:
            chosen[1] = draw(st.integers(1, 9))
        results = made(*chosen)
        ports.extend(results if isinstance(results, tuple) else [results])
    return flow_output(*draw(st.lists(st.sampled_from(ports), min_size=1, max_size=4)))


@st.composite
def controls(draw: st.DrawFn, ports: Sequence[Any], depth: int) -> list[Any]:
    """What a random cond or loop gives; its first outputs are numbers."""
    argument = st.sampled_from(ports) | st.integers(1, 9)
    body: Any = draw(flows(depth=depth - 1) | st.sampled_from(TASKS))
    made: Any
    if not body.inputs or draw(st.booleans()):
        other = first_of(draw(flows(depth=depth - 1)))
        names = {port.spec.name for port in (*first_of(body).inputs, *other.inputs)}
        given = {n: draw(st.integers(1, 9) if n == "y" else argument) for n in sorted(names)}
        made = cond(odd(draw(argument)), first_of(body), other, **given)
    else:
        names_of = [getattr(port, "spec", port).name for port in body.inputs]
        fixed = {name: draw(st.integers(1, 9)) for name in names_of[1:]}
        until = draw(st.none() | st.just(lambda first, *_: large(first)))
        made = loop(body, draw(argument), max_rounds=draw(st.integers(1, 5)), until=until, **fixed)
    return [*made] if isinstance(made, tuple) else [made]


def first_of(made: Any) -> Flow:
    inputs = [flow_input(getattr(port, "spec", port).name, m.int64) for port in made.inputs]
    results = made(*inputs)
    return flow_output(results[0] if isinstance(results, tuple) else results)


def outcome(run: Callable[[], list[Any]]) -> object:
    try:
        return run()
    except m.RoundLimitExceeded:
        return m.RoundLimitExceeded


@settings(max_examples=40)
@given(flow=flows(), seed=st.integers(0, 9), data=st.data())
def test_any_order_of_units_gives_the_values_of_the_flow(
    flow: Flow, seed: int, data: st.DataObject
) -> None:
    values = [data.draw(st.integers(-50, 50)) for _ in flow.inputs]
    expected = outcome(lambda: naive(flow, values))
    kept = frozenset(range(len(values)))
    fuses: tuple[Fuse, ...] = ("chains", "all", "none")
    for fuse in fuses:
        schedule = compile_flow(flow, fuse=fuse)
        run = partial(run_schedule, schedule, values, random.Random(seed), kept)
        assert outcome(run) == expected, fuse
        stages = schedule.all_stages
        assert [stage.number for stage in stages] == list(range(len(stages)))
        labels = {step.label for step in all_steps(stages)}
        assert len(labels) == len(all_steps(stages)) == count(flow)


def all_steps(stages: Sequence[Stage]) -> list[Step]:
    steps = [step for stage in stages for step in stage.steps]
    return steps + [inner for step in steps for inner in all_steps(step.inner)]


def count(flow: Flow) -> int:
    return sum(count_of(call.task.body) for call in flow.calls)


def count_of(body: m.Body) -> int:
    if isinstance(body, Flow):
        return count(body)
    return 1 + sum(map(count, body.flows)) if isinstance(body, (Cond, Loop)) else 1


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


def test_values_keep_their_registers_until_a_later_step_of_their_stage_reads_them() -> None:
    a = flow_input("a", m.int64)
    one, (quotient, _unread) = add(a, 1), divide(a, 3)
    two = add(one, quotient)
    flow = flow_output(add(two, add(one, 5)), one)
    schedule = compile_flow(flow, fuse="all")
    assert len(schedule.stages) == 1
    assert (
        run_schedule(schedule, [10], random.Random(0), frozenset({0}))
        == naive(flow, [10])
        == [30, 11]
    )


def test_a_value_with_one_reader_is_dropped_by_it_and_one_with_two_is_counted() -> None:
    a = flow_input("a", m.int64)
    shared, alone = add(a, 1), wide(a)
    flow = flow_output(wide(shared), wide(add(shared, alone)))
    schedule = compile_flow(flow, fuse="none")
    of = {stage.label: stage for stage in schedule.stages}
    (kept,), (once,) = of["add"].outputs, of["wide"].outputs
    assert (of["add#2"].frees, of["add#2"].refcounted) == ((once,), (kept,))
    assert schedule.readers == {kept: 2}
    assert run_schedule(schedule, [10], random.Random(0), frozenset({0})) == naive(flow, [10])


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
