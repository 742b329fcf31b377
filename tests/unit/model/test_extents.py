"""Named extents: what the ports of a task have to agree on, before a run and in it."""

import pickle
from typing import TYPE_CHECKING, Any, TypeAlias

import cloudpickle
import numpy as np
import pytest

import flowos as fo
from flowos.model import (
    Array,
    PortIncompatible,
    PortSpec,
    ValueRefused,
    WiringError,
    array,
    bind_extents,
    float64,
    int64,
)
from flowos.model._extents import named_extents, with_extents

if TYPE_CHECKING:
    N: TypeAlias = Any
    N3: TypeAlias = Any
    K: TypeAlias = Any
    M: TypeAlias = Any
    Four: TypeAlias = Any
else:
    N, K, M = (fo.array(fo.float64, (name,)) for name in "nkm")
    N3, Four = fo.array(fo.float64, ("n", 3)), fo.array(fo.float64, (4,))


def zeros(*shape: int) -> Any:
    return np.zeros(shape)


@fo.task
def add(b: N, c: N) -> N:
    return b + c


@fo.task
def first(b: N3, k: fo.int64) -> K:
    return b[:k, 0]


@fo.task
def halves(b: N) -> tuple[M, M]:
    return b[:2], b[2:]


def run(task: Any, *values: object) -> Any:
    inputs = [fo.flow_input(p.name, p.type) for p in task.inputs]
    with fo.slice(fo.flow_output(task(*inputs)), workers="inline") as opened:
        return opened.run(*values)


def refused(task: Any, *values: object) -> str:
    with pytest.raises(ValueRefused) as caught:
        run(task, *values)
    return str(caught.value)


def test_extents_are_bound_where_a_task_runs() -> None:
    (total,) = run(add, zeros(4), zeros(4))
    assert total.shape == (4,)
    (column,) = run(first, zeros(4, 3), 2)
    assert column.shape == (2,)
    assert [part.shape for part in run(halves, zeros(4))] == [(2,), (2,)]


def test_what_disagrees_is_named_with_both_sizes() -> None:
    assert refused(add, zeros(4), zeros(5)) == (
        "task 'add', input 'c': extent 'n' is 5, and 4 in input 'b'"
    )
    assert refused(first, zeros(4, 3), 9) == (
        "task 'first', output 'out': extent 'k' is 4, and 9 in input 'k'"
    )
    assert refused(first, zeros(4, 3), -1) == "task 'first', input 'k': extent 'k' is -1"
    assert refused(halves, zeros(5)) == (
        "task 'halves', output 'out2': extent 'm' is 3, and 2 in output 'out1'"
    )


def test_an_output_has_the_size_of_the_inputs() -> None:
    @fo.task
    def shorter(b: N) -> N:
        return b[1:]

    assert refused(shorter, zeros(4)) == (
        "task 'shorter', output 'out': extent 'n' is 3, and 4 in input 'b'"
    )


@pytest.mark.parametrize("given", [None, zeros(2, 3), zeros(4).tolist()])
def test_what_is_no_such_array_is_refused_by_its_port(given: object) -> None:
    @fo.task
    def other(b: N) -> N:
        return given if b is not None else b

    @fo.task
    def two(b: N) -> tuple[fo.int64, N]:
        return len(b), given

    @fo.task
    def too_few(b: N) -> tuple[fo.int64, N]:
        return (len(b),)  # type: ignore[return-value]

    assert "task 'other', output 'out': expected array(float64, ('n',))" in refused(other, zeros(4))
    assert "output 'out2': expected array(float64, ('n',))" in refused(two, zeros(4))
    assert "expected 2 values, given 1 values" in refused(too_few, zeros(4))


def test_one_of_several_outputs_has_to_agree_too() -> None:
    @fo.task
    def two(b: N) -> tuple[N, fo.int64]:
        return b[1:], 1

    assert "output 'out1': extent 'n' is 3, and 4 in input 'b'" in refused(two, zeros(4))


def test_sizes_that_are_known_are_compared_when_a_task_is_wired() -> None:
    four, five = (fo.flow_input(f"x{n}", fo.array(fo.float64, (n,))) for n in (4, 5))
    free = fo.flow_input("x", N)
    with pytest.raises(WiringError, match="task 'add', input 'c': extent 'n' is 5, and 4 in input"):
        add(four, five)
    with pytest.raises(WiringError, match="extent 'n' is 5, and 4 in input 'b'"):
        add(four, zeros(5))
    assert str(add(free, four).spec.type) == "array(float64, (4,))"
    assert str(add(free, free).spec.type) == "array(float64, ('n',))"
    with pytest.raises(WiringError, match="task 'add', input 'c'"):
        add(five, add(free, four))
    assert str(first(fo.flow_input("y", N3), 2).spec.type) == "array(float64, (2,))"


def test_an_extent_that_is_not_known_does_not_fit_a_number() -> None:
    @fo.task
    def four(b: Four) -> fo.int64:
        return len(b)

    with pytest.raises(WiringError, match="expected array"):
        four(add(fo.flow_input("x", N), fo.flow_input("y", N)))
    known = add(fo.flow_input("x", N), zeros(4))
    flow = fo.flow_output(four(known), known)
    copy = pickle.loads(cloudpickle.dumps(flow))
    assert str(copy.outputs[1].spec.type) == "array(float64, (4,))"


def test_the_integer_input_of_a_name_is_that_extent() -> None:
    port = array("float64", "n")
    ports = [PortSpec("n", int64), PortSpec("b", port), PortSpec("s", float64)]
    extents = named_extents(ports, [PortSpec("a", port)])
    assert bind_extents(extents, [4, zeros(4), 1.0]) == {"n": 4}
    with pytest.raises(PortIncompatible, match="input 'n': extent 'n' is 5, and 4 in input 'b'"):
        bind_extents(extents, [5, zeros(4), 1.0])


def test_an_integer_that_is_an_extent_is_compared_before_the_function_is_called() -> None:
    def half(n: int, b: Any) -> Any:
        calls.append(n)
        return b[: n // 2]

    calls: list[int] = []
    ports = [PortSpec("n", int64), PortSpec("b", array("float64", "n"))]
    checked = with_extents(half, named_extents(ports, []))
    assert checked(4, zeros(4)).shape == (2,)
    with pytest.raises(PortIncompatible, match="input 'n': extent 'n' is 5, and 4 in input 'b'"):
        checked(5, zeros(4))
    assert calls == [4]


def test_a_function_without_named_extents_is_itself() -> None:
    assert named_extents([PortSpec("b", fo.array(None, (3,)))], []) == ()
    assert with_extents(len, ()) is len


@pytest.mark.parametrize("shape", ["n", ("n", None, 2)])
def test_a_shape_has_names(shape: Any) -> None:
    port = fo.array(fo.float64, shape)
    assert isinstance(port, Array)
    assert port.shape == (("n",) if shape == "n" else shape)
    assert port.accepts(fo.array(fo.float64, (7,) if shape == "n" else (7, 8, 2)))
    assert port.with_sizes({"m": 3}) is port


def test_an_extent_has_the_name_of_a_variable() -> None:
    with pytest.raises(TypeError, match="names, None for any"):
        fo.array(fo.float64, ("2n",))


@pytest.mark.parametrize("shape", [None, (2, 3), (None, "n"), (None, 3), ("n", 3)])
def test_the_quick_answer_is_that_of_check(shape: Any) -> None:
    for dtype in (None, fo.float64):
        port = fo.array(dtype, shape)
        quick = port.quick()
        values: list[Any] = [zeros(2, 3), zeros(2, 4), zeros(2), np.zeros((2, 3), "f4"), None]
        values += [np.zeros((2, 3), ">f8"), zeros(2, 3).view(np.memmap), [1.0]]
        for value in (*values, *reversed(values)):
            assert quick(value) is (port.check(value) is None), (str(port), value)
