"""Flows that were copied, or came from another process, are flows like others."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

import flowos.model as m
from flowos.model import Flow, Needs, flow_input, flow_output, task
from flowos.plan import Schedule, compile_flow

DEPTH = 3000
"""Tasks in a row: more than Python's recursion takes."""


def subtract(x: int, y: int) -> int:
    return x - y


minus = m.Task(
    name="minus",
    inputs=(m.PortSpec("x", m.int64), m.PortSpec("y", m.int64)),
    outputs=(m.PortSpec("out", m.int64),),
    body=m.Python(subtract),
    needs=Needs(cores=2),
)


@task
def both(x: int, y: int) -> tuple[int, int]:
    return x, y


def through_pickle(flow: Flow) -> Any:
    return pickle.loads(cloudpickle.dumps(flow))


COPIES: tuple[Callable[[Flow], Any], ...] = (copy.copy, copy.deepcopy, through_pickle)


def chain(depth: int) -> Flow:
    b, a = flow_input("b", m.int64), flow_input("a", m.int64)
    port: Any = minus(a, b)
    for _ in range(depth):
        port = minus(port, 1)
    first, second = both(port, a)
    return flow_output(second, a, first, name="chain")


def program(schedule: Schedule) -> list[Any]:
    """All that a schedule says but for the identity of tasks."""
    return [
        schedule.inputs,
        schedule.outputs,
        [(stage.inputs, stage.outputs, stage.constants, stage.needs) for stage in schedule.stages],
        [(s.label, s.inputs, s.outputs) for stage in schedule.stages for s in stage.steps],
    ]


@pytest.mark.parametrize("made", COPIES)
def test_a_copy_is_the_same_program(made: Callable[[Flow], Any]) -> None:
    flow = chain(3)
    other = made(flow)
    assert other is not flow
    assert (other.name, str(other)) == (flow.name, str(flow))
    assert [p.spec.name for p in other.inputs] == ["b", "a"]
    assert program(compile_flow(other)) == program(compile_flow(flow))


@pytest.mark.parametrize("made", COPIES)
def test_a_flow_of_many_tasks_in_a_row_is_copied(made: Callable[[Flow], Any]) -> None:
    assert len(made(chain(DEPTH)).calls) == DEPTH + 2


@pytest.mark.parametrize("made", COPIES)
def test_a_copy_that_uses_flows_as_tasks_still_does(made: Callable[[Flow], Any]) -> None:
    inner = chain(2)
    b = flow_input("b", m.int64)
    outer = flow_output(*inner(b, 5), *inner(b, 6))
    assert program(compile_flow(made(outer))) == program(compile_flow(outer))


@pytest.mark.parametrize("made", COPIES)
def test_ports_of_a_copy_and_of_its_original_are_wired_together(
    made: Callable[[Flow], Any],
) -> None:
    a = flow_input("a", m.int64)
    flow = flow_output(minus(a, 1))
    other = made(flow_output(minus(flow_input("other", m.int64), 10)))
    joined = flow_output(minus(flow.outputs[0], other.outputs[0]))
    assert [p.spec.name for p in joined.inputs] == ["a", "other"]
    schedule = compile_flow(joined)
    steps = [step for stage in schedule.stages for step in stage.steps]
    assert [step.label for step in steps] == ["minus", "minus#2", "minus#3"]
    assert len(schedule.ready) == 2, "neither waits for the other"


def test_a_copied_port_and_call_have_numbers_of_their_own() -> None:
    port = minus(flow_input("a", m.int64), 1)
    other = copy.deepcopy(port)
    assert other.number > other.call.number > other.call.arguments[0].number > port.number


@pytest.mark.parametrize("made", COPIES)
def test_the_types_of_a_copied_task_are_still_known(made: Callable[[Any], Any]) -> None:
    prints = m.command(["cat", m.In("x")], stdout=("raw", m.bytes_), name="f")
    other = made(flow_output(prints(flow_input("x", m.File)))).calls[0].task
    again = m.Task(name="g", inputs=other.inputs, outputs=other.outputs, body=other.body)
    assert str(again) == "g(x: File) -> raw: bytes_"
