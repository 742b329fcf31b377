from typing import Annotated

import numpy as np
import pytest
from numpy.typing import NDArray

import flowos.model as m
from flowos.model import (
    Port,
    ValueRefused,
    WiringError,
    array,
    flow_input,
    flow_output,
    task,
)
from flowos.model._wiring import bind_arguments


@task
def add(x: int, y: int = 1) -> int:
    return x + y


@task
def divide(x: int, y: int) -> tuple[int, int]:
    return divmod(x, y)


Vector = Annotated[NDArray[np.float64], array(m.float64, (None,))]


@task
def length(values: Vector) -> int:
    return len(values)


def integer(name: str = "a") -> Port:
    return flow_input(name, m.int64)


@pytest.mark.parametrize(
    ("names", "counted"),
    [((), "no arguments"), (("x",), "1 argument (x)"), (("x", "y"), "2 arguments (x, y)")],
)
def test_a_call_with_too_many_arguments_says_how_many_there_are(
    names: tuple[str, ...], counted: str
) -> None:
    with pytest.raises(WiringError) as refused:
        bind_arguments("it", names, [0] * 3, {}, error=WiringError)
    assert str(refused.value) == f"it takes {counted}, 3 given"


def test_a_call_gives_a_port_or_a_tuple_of_them() -> None:
    port = add(integer())
    quotient, rest = divide(port, 2)
    assert repr(port) == "<port add: int64>"
    assert (quotient.name, rest.name) == ("divide.out1", "divide.out2")
    assert repr(integer()) == "<input a: int64>"


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        ((), {}, "task 'add' takes 2 arguments (x, y); nothing given for x"),
        ((1, 2, 3), {}, "task 'add' takes 2 arguments (x, y), 3 given"),
        ((1,), {"x": 2}, "task 'add': input 'x' is given twice"),
        ((1,), {"z": 2}, "task 'add' has no input 'z'; it takes 2 arguments (x, y)"),
        ((1.5,), {}, "task 'add', input 'x': expected int64, given 1.5 (float)"),
        ((2**63,), {}, "task 'add', input 'x': expected int64 ("),
        ((add,), {}, "task 'add', input 'x': expected one port or value of int64, given <task add"),
        ((divide(1, 2),), {}, "given (<port divide.out1: int64>, <port divide.out2: int64>)"),
        (
            (flow_input("f", m.float64),),
            {},
            "task 'add', input 'x': expected int64, given f: float",
        ),
        ((flow_input("f", m.any_),), {}, "expected int64, given f: any_"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is_written(
    arguments: tuple[object, ...], named: dict[str, object], words: str
) -> None:
    with pytest.raises(WiringError, match=r"^[^\n]*$") as caught:
        add(*arguments, **named)
    assert words in str(caught.value)


def test_a_task_without_inputs_says_that_it_takes_none() -> None:
    with pytest.raises(WiringError, match="takes no arguments, 1 given"):
        task({"task_name": "one", "iport_nametypes": (), "oport_nametypes": int, "fun": int})(1)


def test_arrays_of_another_shape_are_refused_where_they_are_written() -> None:
    with pytest.raises(WiringError, match="input 'values': expected array"):
        length(flow_input("v", array(m.float64, (2, 2))))
    with pytest.raises(WiringError, match="given an array of float32"):
        length(np.zeros(2, np.float32))
    assert isinstance(length(flow_input("v", array(m.float64, (2,)))), Port)


def test_inputs_are_in_order_of_making_and_calls_in_an_order_that_runs() -> None:
    first, second, unused = integer("first"), integer("second"), integer("unused")
    inner = add(second, first)
    flow = flow_output(add(inner, inner), inner, name="f")
    assert [p.name for p in flow.inputs] == ["first", "second"]
    assert [c.task.name for c in flow.calls] == ["add", "add"]
    assert flow.outputs[1] is inner
    assert unused not in flow.nodes
    assert repr(flow) == "<flow f(first: int64, second: int64), 2 tasks>"


def test_an_input_may_be_an_output_and_outputs_may_repeat() -> None:
    a = integer()
    flow = flow_output((a, [a]))
    assert flow.outputs == (a, a)
    assert flow.calls == ()


@pytest.mark.parametrize(
    ("ports", "words"),
    [((), "give at least one port"), ((3,), "expected ports, given 3 (int)")],
)
def test_a_flow_without_ports_is_refused(ports: tuple[object, ...], words: str) -> None:
    with pytest.raises(WiringError, match=r"^flow_output: ") as caught:
        flow_output(*ports)
    assert words in str(caught.value)


def test_of_a_task_that_was_not_called_it_is_said_how() -> None:
    with pytest.raises(WiringError) as caught:
        flow_output(add)
    ports = "(fo.flow_input('x', ...), fo.flow_input('y', ...))"
    assert str(caught.value).endswith(f" (Task); call it with ports, such as {ports}")


@pytest.mark.parametrize(
    ("name", "type_", "words"),
    [
        ("", m.int64, "its name is a text, given ''"),
        (3, m.int64, "its name is a text, given 3"),
        ("a", "int64", "flow_input 'a': expected a port type such as fo.int64, given 'int64'"),
    ],
)
def test_a_wrong_input_is_refused(name: str, type_: object, words: str) -> None:
    with pytest.raises(WiringError, match="flow_input") as caught:
        flow_input(name, type_)
    assert words in str(caught.value)


def test_two_reachable_inputs_of_one_name_are_refused() -> None:
    with pytest.raises(WiringError, match="two inputs of the flow are named 'a'"):
        flow_output(add(integer("a"), integer("a")))


def test_two_flows_may_share_tasks() -> None:
    shared = add(integer())
    assert flow_output(shared).calls == flow_output(shared, shared).calls


def test_an_inner_task_of_a_flow_used_as_a_task_is_refused_outside() -> None:
    inner = add(integer())
    flow = flow_output(add(inner), name="twice")
    with pytest.raises(
        WiringError, match="task 'add' is inside a flow that is used here as a task"
    ):
        flow_output(add(flow(1), inner))


def test_an_input_of_a_flow_used_as_a_task_is_refused_outside() -> None:
    a = integer()
    flow = flow_output(add(a))
    with pytest.raises(WiringError, match=r"input 'a' belongs to .* another with fo.flow_input"):
        flow_output(flow(a))


def test_an_inner_port_is_refused_through_several_flows() -> None:
    inner = add(integer("a"))
    nested = flow_output(flow_output(inner)(integer("b")))
    with pytest.raises(WiringError, match="is inside a flow"):
        flow_output(nested(1), inner)


def test_a_flow_is_called_as_a_task_with_named_outputs() -> None:
    quotient, rest = divide(add(integer("a")), integer("b"))
    flow = flow_output(quotient, rest, rest, name="parts")
    ports = flow(1, b=2)
    assert [p.name for p in ports] == [
        "parts.divide.out1",
        "parts.divide.out2",
        "parts.divide.out2#2",
    ]
    with pytest.raises(WiringError, match=r"task 'parts' takes 2 arguments \(a, b\)"):
        flow(1)


@pytest.mark.parametrize(
    ("values", "named", "words"),
    [
        ((1,), {}, "takes 2 arguments (a, b); nothing given for b"),
        ((1, 2, 3), {}, "takes 2 arguments (a, b), 3 given"),
        ((1,), {"a": 2}, "run: flow 'flow': input 'a' is given twice"),
        ((1, 2), {"c": 2}, "has no input 'c'; it takes 2 arguments (a, b), on which its outputs"),
    ],
)
def test_values_that_do_not_meet_the_inputs_are_refused(
    values: tuple[object, ...], named: dict[str, object], words: str
) -> None:
    flow = flow_output(add(integer("a"), integer("b")))
    with pytest.raises(ValueRefused, match=r"^run: ") as caught:
        flow.bind(values, named)
    assert words in str(caught.value)


def test_values_are_bound_by_order_and_by_name() -> None:
    flow = flow_output(add(integer("a"), integer("b")))
    assert flow.bind((1, 2), {}) == (1, 2)
    assert flow.bind((), {"b": 2, "a": 1}) == (1, 2)
    assert flow.bind((1,), {"b": 2}) == (1, 2)


def test_a_flow_without_inputs_refuses_values() -> None:
    with pytest.raises(ValueRefused, match="takes no arguments, 1 given"):
        flow_output(add(1, 2)).bind((3,), {})
