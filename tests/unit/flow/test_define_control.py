"""fo.cond and fo.loop: what they are wired to, what their outputs are, what is refused and why."""

import copy
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

import flowos.model as m
from flowos.model import (
    Flow,
    Port,
    Task,
    WiringError,
    cond,
    flow_input,
    flow_output,
    loop,
    task,
)
from flowos.plan import compile_flow

ROWS = m.array(m.float64, (None, 3))
FOUR = m.array(m.float64, (4, 3))


@task
def half(x: int) -> int:
    return x // 2


@task
def thrice(x: int, plus: int = 1) -> int:
    return 3 * x + plus


@task
def minus(x: int, y: int) -> int:
    return x - y


@task
def even(x: int) -> bool:
    return x % 2 == 0


@task
def small(x: int) -> bool:
    return x < 2


@task
def step(x: float, a: float) -> tuple[float, float]:
    new = (x + a / x) / 2
    return new, abs(new - x)


@task
def close(x: float, change: float, *, margin: float = 1e-9) -> bool:
    return change < margin * x


@task
def as_float(x: int) -> float:
    return float(x)


@task
def anything(x: object) -> object:
    return x


def typed(name: str, takes: object, gives: object) -> Task:
    spec = {"task_name": name, "iport_nametypes": takes, "oport_nametypes": gives}
    return task({**spec, "fun": lambda x: x})


def number(name: str = "n") -> Port:
    return flow_input(name, m.int64)


def body_of(port: Port) -> Any:
    assert port.call is not None
    return port.call.task.body


def test_both_branches_get_values_by_position() -> None:
    n = number()
    port = cond(even(n), half, thrice, n)
    assert [str(spec) for spec in port.call.task.inputs] == ["condition: bool_", "x: int64"]
    assert body_of(port).takes == ((1,), (1,))
    assert (port.spec.type, port.name) == (m.int64, "cond")


def test_a_branch_takes_the_values_by_name_that_it_has_inputs_for() -> None:
    n = number()
    port = cond(even(n), minus, half, x=n, y=2)
    assert body_of(port).takes == ((1, 2), (1,))
    other = cond(even(n), half, minus, n, y=3)
    assert body_of(other).takes == ((1,), (1, 2))


def test_an_input_may_be_called_condition_too() -> None:
    flow = flow_output(half(number("condition")))
    port = cond(True, flow, flow, 3)
    assert [spec.name for spec in port.call.task.inputs] == ["condition", "condition#2"]
    port = cond(True, flow, half, condition=1, x=2)
    assert [spec.name for spec in port.call.task.inputs] == ["condition", "condition#2", "x"]


def test_of_two_types_an_input_has_the_narrow_one_and_an_output_the_wide_one() -> None:
    rows, four = typed("rows", ROWS, ROWS), typed("four", FOUR, FOUR)
    for both in ((rows, four), (four, rows)):
        port = cond(True, *both, flow_input("v", FOUR))
        assert port.call.task.inputs[1].type == FOUR
        assert port.spec.type == ROWS
    with pytest.raises(WiringError, match=r"expected array.float64, .4, 3.., given v: array"):
        cond(True, rows, four, flow_input("v", ROWS))


def test_several_outputs_are_several_ports() -> None:
    a = flow_input("a", m.float64)
    root, change = loop(step, 1.0, a=a, until=close, max_rounds=9)
    assert (root.name, change.name) == ("loop.step.out1", "loop.step.out2")
    one, two = cond(True, step, step, 1.0, 2.0)
    assert (one.spec.type, two.spec.type) == (m.float64, m.float64)


def test_defaults_and_inputs_by_keyword_only_are_those_of_the_task() -> None:
    port = loop(thrice, 1, max_rounds=2)
    assert [spec.name for spec in port.call.task.inputs] == ["x"]
    port = loop(thrice, 1, plus=5, max_rounds=2)
    assert [spec.name for spec in port.call.task.inputs] == ["x", "plus"]


def test_until_may_be_a_function_that_wires_and_see_what_is_in_the_body() -> None:
    x = flow_input("x", m.int64)
    inner = half(x)
    body = flow_output(minus(inner, 1))
    port = loop(body, 9, until=lambda _: small(inner), max_rounds=5)
    assert [call.task.name for call in body_of(port).flows[0].calls] == ["half", "minus", "small"]


def test_until_may_be_an_output_of_the_body() -> None:
    x = flow_input("x", m.int64)
    body = flow_output(half(x), small(x))
    value, done = loop(body, 9, until=lambda _, done: done, max_rounds=5)
    assert (value.spec.type, done.spec.type) == (m.int64, m.bool_)


ONE = flow_output(half(number("x")), name="one")
PAIR = flow_output(*step(flow_input("x", m.float64), 2.0), name="pair")
OUTER = number("outer")
GIVES_OUTER = half(OUTER)

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no condition": (
        lambda: cond(half(1), half, half, 1),
        "task 'cond', input 'condition': expected bool_, given half: int64",
    ),
    "a number as a condition": (
        lambda: cond(1, half, half, 1),
        "task 'cond', input 'condition': expected bool_, given 1 .int.",
    ),
    "a function as a branch": (
        lambda: cond(True, half.body.fun, half, 1),  # type: ignore[arg-type,union-attr]
        "cond: if_true: expected a flow or a task, given <function half",
    ),
    "no branch": (
        lambda: cond(True, half, None, 1),  # type: ignore[arg-type]
        "cond: if_false: expected a flow or a task, given None",
    ),
    "other types of outputs": (
        lambda: cond(True, half, as_float, 1),
        "cond: output 1 is int64 if true, and float64 if false",
    ),
    "another number of outputs": (
        lambda: cond(True, PAIR, flow_output(flow_input("x", m.float64)), 1.0),
        "cond: 'pair' gives 2 outputs, 'flow' gives 1: both have to give as many",
    ),
    "other types of inputs": (
        lambda: cond(True, half, PAIR, 1),
        "cond: input 'x' is int64 if true, and float64 if false",
    ),
    "too few values": (
        lambda: cond(True, half, minus, 1),
        "task 'minus' takes 2 arguments .x, y.; nothing given for y",
    ),
    "too many values": (
        lambda: cond(True, half, minus, 1, 2),
        "task 'half' takes 1 argument .x., 2 given",
    ),
    "too many values for a flow": (
        lambda: cond(True, ONE, minus, 1, 2),
        "cond: if_true 'one' takes 1 argument .x., 2 given",
    ),
    "a name that neither has": (
        lambda: cond(True, half, ONE, 1, z=2),
        "cond: input 'z' is none of 'half', nor of 'one'",
    ),
    "a name given twice": (
        lambda: cond(True, half, minus, 1, x=2, y=3),
        "task 'half': input 'x' is given twice|takes 1 argument",
    ),
    "a value of another type": (
        lambda: cond(True, half, thrice, "seven"),
        "task 'cond', input 'x': expected int64, given 'seven'",
    ),
    "no first value": (
        lambda: loop(half, max_rounds=2),
        "task 'half' takes 1 argument .x.; nothing given for x",
    ),
    "all values by name": (
        lambda: loop(half, x=1, max_rounds=2),
        "loop: give by position what changes from round to round",
    ),
    "more that changes than outputs": (
        lambda: loop(minus, 7, 2, max_rounds=2),
        "loop: 2 values are given by position, and body 'minus' has 1 outputs",
    ),
    "an output that is no input": (
        lambda: loop(as_float, 1, max_rounds=2),
        "loop: output 1 of body 'as_float' is its input 'x' in the next round: "
        "expected int64, given as_float: float64",
    ),
    "any output for a number": (
        lambda: loop(flow_output(anything(half(number("x")))), 1, max_rounds=2),
        "expected int64, given anything: any_",
    ),
    "a shape that grows": (
        lambda: loop(typed("grow", FOUR, ROWS), flow_input("v", FOUR), max_rounds=2),
        "expected array.float64, .4, 3.., given grow: array.float64, .any, 3..",
    ),
    "a name that the body lacks": (
        lambda: loop(ONE, 1, y=2, max_rounds=2),
        "loop: body 'one' has no input 'y'; it takes 1 argument .x.",
    ),
    "a function as a body": (
        lambda: loop(lambda x: x, 1, max_rounds=2),  # type: ignore[arg-type]
        "loop: body: expected a flow or a task, given <function",
    ),
    "until that is nothing to call": (
        lambda: loop(half, 1, until=3, max_rounds=2),  # type: ignore[arg-type]
        "loop: until=3 .int.; expected a flow, a task or a function",
    ),
    "until that is no condition": (
        lambda: loop(half, 1, until=half, max_rounds=2),
        "loop: until has to give one port of bool_, given <port half: int64>",
    ),
    "until that gives a value": (
        lambda: loop(half, 1, until=lambda _: True, max_rounds=2),
        "loop: until has to give one port of bool_, given True",
    ),
    "until that takes less": (
        lambda: loop(step, 1.0, a=2.0, until=small, max_rounds=2),
        "task 'small' takes 1 argument .x., 2 given",
    ),
    "until with an input of its own": (
        lambda: loop(half, 1, until=lambda x: even(minus(x, OUTER)), max_rounds=2),
        "loop: until uses 'outer', which is outside of the loop: make it an input of body 'half'",
    ),
    "until with a task from outside": (
        lambda: loop(half, 1, until=lambda x: even(minus(x, GIVES_OUTER)), max_rounds=2),
        "loop: until uses 'outer', which is outside of the loop",
    ),
    "until with a constant's task from outside": (
        lambda: loop(half, 1, until=_with_old_task, max_rounds=2),
        "loop: until uses 'thrice', which is outside of the loop",
    ),
    "a port of a body outside": (
        lambda: flow_output(loop(ONE, 1, max_rounds=2), ONE.outputs[0]),
        "task 'half' is inside a flow that is used here as a task",
    ),
}
OLD = thrice(4)


def _with_old_task(x: Port) -> Any:
    return even(minus(x, OLD))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_does_not_fit_is_refused_when_it_is_wired(name: str) -> None:
    wire, words = REFUSED[name]
    with pytest.raises(WiringError, match=words):
        wire()


@pytest.mark.parametrize("rounds", [0, -1, True, 2.0, "3", None])
def test_rounds_are_a_whole_number_from_one_on(rounds: Any) -> None:
    with pytest.raises(WiringError, match=r"loop: max_rounds=.*; expected a whole number, 1 or"):
        loop(half, 1, max_rounds=rounds)
    assert loop(half, 1, max_rounds=1).name == "loop"


def test_conds_and_loops_are_at_most_64_deep() -> None:
    flow = flow_output(half(number("x")))
    for i in range(64):
        inner = flow_output(flow(number(f"y{i}")))
        made = cond(True, half, inner, i) if i % 2 else loop(inner, i, max_rounds=1)
        flow = flow_output(minus(made, number(f"x{i}")))
    with pytest.raises(WiringError, match="loop: conds and loops may be 64 deep in each other"):
        loop(flow, 1, max_rounds=1)
    with pytest.raises(WiringError, match="cond: conds and loops may be 64 deep in each other"):
        cond(True, half, flow, 1)
    assert len(labels_of(flow)) == 1


def labels_of(flow: Flow) -> list[str]:
    return [stage.label for stage in compile_flow(flow).all_stages]


def nested(depth: int) -> Flow:
    x = flow_input("x", m.int64)
    flow = flow_output(half(x))
    for i in range(depth):
        y = number(f"y{i}")
        flow = flow_output(cond(even(y), loop_of(flow), flow, y))
    return flow


def loop_of(body: Flow) -> Flow:
    x = number("x")
    return flow_output(loop(body, x, until=small, max_rounds=3))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda flow: cloudpickle.loads(cloudpickle.dumps(flow))]
)
def test_a_flow_with_conds_and_loops_can_be_copied(copied: Callable[[Flow], Flow]) -> None:
    flow = nested(3)
    other = copied(flow)
    assert str(other) == str(flow)
    assert labels_of(other) == labels_of(flow)


def test_a_flow_as_text_shows_what_its_conds_and_loops_run() -> None:
    n = number()
    body = flow_output(thrice(flow_input("x", m.int64), 2), name="grow")
    flow = flow_output(cond(even(n), half, loop_of(body), n), name="shown")
    assert str(flow) == "\n".join(
        [
            "flow shown",
            "  input   n: int64",
            "  task    even(n) -> bool_",
            "  task    cond(even, n) -> int64",
            "    true:",
            "      input   x: int64",
            "      task    half(x) -> int64",
            "      output  half: int64",
            "    false:",
            "      input   x: int64",
            "      task    loop(x) -> int64",
            "        up to 3 rounds:",
            "          input   x: int64",
            "          task    thrice(x, 2) -> int64",
            "          task    small(thrice) -> bool_",
            "          output  thrice: int64",
            "          output  small: bool_",
            "      output  loop: int64",
            "  output  cond: int64",
        ]
    )
    assert "\n    2 rounds:\n" in str(flow_output(loop(half, 1, max_rounds=2)))


def test_a_drawing_has_the_tasks_of_conds_and_loops_and_the_way_back() -> None:
    n = number()
    flow = flow_output(cond(even(n), half, loop_of(flow_output(half(number("x")))), n))
    dot, svg = flow.dot(), flow.svg()
    for label in (
        *("even", "cond", "true: half", "false: loop", "half", "small"),
        *("up to 3 rounds", "true or false"),
    ):
        assert f'label="{label}"' in dot
        assert f">{label}</text>" in svg
    assert dot.count("style=dashed") == svg.count("stroke-dasharray") == 1
    assert compile_flow(flow_output(half(n))).all_stages[0].flows == ()
