"""Flows in which a value says the engines: wired anew, whatever they are made of."""

from collections.abc import Callable
from typing import Any

import pytest

from flowos.model import (
    Command,
    Cond,
    Either,
    EngineFlow,
    Flow,
    Loop,
    NativeCode,
    Needs,
    PortSpec,
    Python,
    SliceRefused,
    Task,
    WiringError,
    array,
    bool_,
    cond,
    either,
    engine_of,
    float32,
    flow_input,
    flow_output,
    int64,
    loop,
    task,
    with_chosen,
    with_engines,
)


def made(name: str, engine: str = "python", **options: Any) -> Task:
    fun = options.pop("fun", abs)
    body = NativeCode(fun, engine=engine) if engine != "python" else Python(fun)
    port = PortSpec(options.pop("port", "x"), options.pop("type", int64))
    out = PortSpec(options.pop("out", port.name), port.type)
    return Task(name=name, inputs=(port,), outputs=(out,), body=body, **options)


def both(name: str = "both") -> Task:
    return either(made("first"), made("second", "cpu"), name=name)


def site_body(site: int, of: Task, bodies: tuple[Python, ...]) -> Callable[..., Any]:
    return lambda *_: (site, of, bodies)


def opened(flow: Flow, *engines: str) -> EngineFlow:
    return with_engines(flow, engines or None, site_body)


def test_a_task_has_the_first_body_and_the_first_name() -> None:
    found = either(made("first", out="one"), made("second", "cpu", fun=round, out="other"))
    assert isinstance(found.body, Either)
    assert (found.name, found.body.engines, found.body.fun) == ("first", ("python", "cpu"), abs)
    assert str(found) == "first(x: int64) -> one: int64"
    assert engine_of(flow_output(found(1))) == "flow"
    assert engine_of(Command(argv=("true",))) == "command"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: either(), "two tasks or more"),
        (lambda: either(made("a")), "either 'a': give it two tasks or more"),
        (lambda: either(made("a"), 3), "expected tasks, given 3"),  # type: ignore[arg-type]
        (lambda: either(made("a"), both()), "'both' is no function on one engine"),
        (lambda: either(made("a"), made("b")), "two of its tasks are on engine 'python'"),
        (
            lambda: either(made("a"), made("b", "cpu"), made("c", "cpu")),
            "two of its tasks are on engine 'cpu'",
        ),
        (lambda: either(made("a"), made("b", "cpu", port="y")), "inputs of 'b' are (y: int64), of"),
        (lambda: either(made("a"), made("b", "cpu", needs=Needs(cores=2))), "needs of 'b' and 'a'"),
        (
            lambda: either(made("a"), task(lambda x: x, name="b", limit_seconds=1)),
            "b",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, says: str) -> None:
    with pytest.raises(WiringError) as caught:
        make()
    assert says in str(caught.value)


def test_time_limits_have_to_be_the_same() -> None:
    one, two = made("a"), made("b", "cpu")
    limited = Task(
        name="b",
        inputs=two.inputs,
        outputs=two.outputs,
        body=NativeCode(abs, limit_seconds=1.0, engine="cpu"),
    )
    with pytest.raises(WiringError, match="limit_seconds of 'b' and the first differ"):
        either(one, limited)


def test_a_flow_without_such_tasks_is_as_it_is() -> None:
    flow = flow_output(made("a")(flow_input("x", int64)))
    assert opened(flow) == EngineFlow(flow, ())


def test_sites_say_which_of_them_gives_what_and_what_is_read_elsewhere() -> None:
    x = flow_input("engines", int64)
    first, second = both("a")(x), None
    second = both("b")(first)
    found = opened(flow_output(made("c")(first), second))
    assert [site.label for site in found.sites] == ["a", "b"]
    assert [site.sources for site in found.sites] == [(None,), ((0, 0),)]
    assert [site.read for site in found.sites] == [(True,), (True,)]
    assert [site.engines for site in found.sites] == [("python", "cpu")] * 2
    assert [port.spec.name for port in found.flow.inputs] == ["engines", "engines#2"]
    assert len(found.flow.outputs) == 4
    alone = opened(flow_output(both("b")(both("a")(x)))).sites
    assert [site.read for site in alone] == [(False,), (True,)]


@pytest.mark.parametrize("engines", [("cpu",), ("cpu", "cuda")])
def test_a_task_that_is_left_with_one_body_has_that(engines: tuple[str, ...]) -> None:
    found = opened(flow_output(both()(flow_input("x", int64))), *engines)
    assert found.sites == ()
    assert [engine_of(call.task.body) for call in found.flow.calls] == ["cpu"]


def test_the_order_of_engines_is_that_of_the_bodies() -> None:
    (site,) = opened(flow_output(both()(flow_input("x", int64))), "cpu", "python").sites
    assert site.engines == ("cpu", "python")


def test_no_body_for_any_engine_is_refused() -> None:
    with pytest.raises(SliceRefused, match="'both' has bodies for python, cpu; engines are cuda"):
        opened(flow_output(both()(flow_input("x", int64))), "cuda")


def test_flows_in_flows_are_opened_and_a_constant_may_pass_through() -> None:
    y = flow_input("y", int64)
    inner = flow_output(both()(y), y, name="inner")
    outer = flow_output(*inner(3), name="outer")
    found = opened(flow_output(*outer()))
    assert [site.label for site in found.sites] == ["outer/inner/both"]
    assert [call.task.name for call in found.flow.calls] == ["outer/inner/both", "constant"]
    (constant,) = [c for c in found.flow.calls if c.task.name == "constant"]
    assert isinstance(constant.task.body, Python)
    assert constant.task.body.fun(3) == 3


def inner_flow(name: str, made_of: Task) -> Flow:
    return flow_output(made_of(flow_input("x", int64)), name=name)


def test_sites_with_the_engines_that_were_chosen_are_tasks_as_others() -> None:
    inner = inner_flow("inner", both())
    flow = flow_output(both()(inner.task(flow_input("x", int64))), name="outer")
    found = with_chosen(flow, None, ("cpu", "python"))
    assert [(call.task.name, engine_of(call.task.body)) for call in found.calls] == [
        ("inner/both", "cpu"),
        ("both", "python"),
    ]
    assert [port.name for port in found.inputs] == ["x"]
    assert found.name == "outer"


def test_of_the_allowed_engines_those_are_chosen_and_a_task_with_one_has_that() -> None:
    three = either(made("first"), made("second", "cpu"), made("third", "cuda"))
    flow = flow_output(three(both()(flow_input("x", int64))))
    found = with_chosen(flow, ("cuda", "python"), ("cuda",))
    assert [engine_of(call.task.body) for call in found.calls] == ["python", "cuda"]


def test_within_conds_and_loops_the_first_allowed_body_is_taken() -> None:
    inner, other = inner_flow("inner", both()), inner_flow("other", made("a"))
    rounds = inner_flow("rounds", inner.task)
    chosen = cond(flow_input("which", bool_), inner, other, flow_input("x", int64))
    looped = loop(rounds, chosen, max_rounds=2)
    found = opened(flow_output(both()(looped), made("last")(looped)), "cpu", "python")
    assert len(found.sites) == 1
    bodies = [
        engine_of(call.task.body)
        for each in found.flow.calls
        if isinstance(each.task.body, (Cond, Loop))
        for flow in each.task.body.flows
        for call in flow.calls
    ]
    assert bodies == ["cpu", "python", "cpu"]


def with_an_input_for_nothing(task: Task) -> Flow:
    """Its first input is taken by a flow in it that gives nothing of it."""
    i, j = flow_input("i", int64), flow_input("j", int64)
    inner = flow_output(task(j), i, name="inner")
    return flow_output(inner(flow_input("a", int64), flow_input("b", int64))[0], name="outer")


def test_inputs_stay_where_a_flow_is_opened_that_gives_nothing_of_them() -> None:
    flow = with_an_input_for_nothing(both())
    names = ["a", "b"]
    assert [port.name for port in flow.inputs] == names
    assert [port.name for port in opened(flow).flow.inputs] == [*names, "engines"]
    assert [port.name for port in opened(flow, "cpu").flow.inputs] == names
    assert [port.name for port in with_chosen(flow, None, ("cpu",)).inputs] == names
    chosen = cond(flow_input("which", bool_), flow, flow, *map(flow_input, "xy", (int64, int64)))
    (call,) = opened(flow_output(chosen)).flow.calls
    assert isinstance(call.task.body, Cond)
    assert [[port.name for port in each.inputs] for each in call.task.body.flows] == [names] * 2


def test_flows_may_be_nested_as_deep_as_without_such_tasks() -> None:
    flow = inner_flow("innermost", made("a"))
    for _ in range(300):
        flow = inner_flow("outer", flow.task)
    assert opened(flow).flow is flow


def test_a_flow_that_is_left_without_sites_is_wired_as_it_was() -> None:
    inner = inner_flow("inner", both())
    found = opened(flow_output(inner_flow("outer", inner.task)(flow_input("z", int64))), "python")
    assert found.sites == ()
    assert [port.name for port in found.flow.inputs] == ["z"]
    assert [call.task.name for call in found.flow.calls] == ["outer/inner/both"]


def test_named_extents_are_known_after_it_too() -> None:
    vector = array(float32, ("n",))
    one = either(made("a", type=vector), made("b", "cpu", type=vector))
    found = opened(flow_output(one(flow_input("x", array(float32, (4,))))))
    assert found.flow.outputs[0].spec.type == array(float32, (4,))
