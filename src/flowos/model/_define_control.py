"""Defines conditions and bounded loops: tasks that run flows."""

from collections.abc import Callable, Mapping
from typing import Any

from flowos.model._bodies import PortSpec
from flowos.model._errors import WiringError
from flowos.model._graph import (
    Call,
    Cond,
    Flow,
    Loop,
    Port,
    Task,
    as_task,
    creation_order,
    flow_input,
    flow_output,
)
from flowos.model._ports import PortType, any_, bool_, brief_repr
from flowos.model._wiring import bind_arguments, unused_name

MAX_DEPTH = 64
_Bound = tuple[Flow, tuple[int, ...]]
"""A flow, and which of the given values each of its inputs takes."""


def cond(
    condition: object,
    if_true: Flow | Task,
    if_false: Flow | Task,
    /,
    *values: object,
    **named: object,
) -> Any:
    """Run one of two flows or tasks, and not the other: its outputs, as ports.

    condition: a port of bool_. values: inputs of both, in order. named: inputs of those that have
    one of this name; what the other does not need is given so.
    Raises WiringError for inputs that do not fit, and unless both give as many outputs, of types
    that fit each other.

    >>> @fo.task
    ... def even(n: int) -> bool:
    ...     return n % 2 == 0
    >>> @fo.task
    ... def half(n: int) -> int:
    ...     return n // 2
    >>> @fo.task
    ... def triple(n: int) -> int:
    ...     return 3 * n + 1
    >>> n = fo.flow_input("n", int)
    >>> with fo.slice(fo.cond(even(n), half, triple, n)) as s:
    ...     s.run(6), s.run(7)
    ([3], [22])
    """
    numbers = dict(zip(named, range(1 + len(values), 1 + len(values) + len(named)), strict=True))
    good = _branch("cond: if_true", if_true, len(values), numbers)
    bad = _branch("cond: if_false", if_false, len(values), numbers)
    _check_depth("cond", good[0], bad[0])
    names = [port.spec.name for port in good[0].inputs[: len(values)]] + list(named)
    specs = [PortSpec("condition", bool_)]
    for number, name in enumerate(names, 1):
        ports = [flow.inputs[at.index(number)] for flow, at in (good, bad) if number in at]
        if not ports:
            raise WiringError(
                f"cond: input {name!r} is none of {good[0].name!r}, nor of {bad[0].name!r}"
            )
        type_ = _fitting(f"cond: input {name!r}", ports, narrow=True)
        specs.append(PortSpec(unused_name(name, {spec.name for spec in specs}), type_))
    made = Task(
        name="cond",
        inputs=tuple(specs),
        outputs=_outputs_of_both(good[0], bad[0]),
        body=Cond((good[0], bad[0]), (good[1], bad[1])),
    )
    return made(condition, *values, *named.values())


def loop(
    body: Flow | Task,
    /,
    *values: object,
    max_rounds: int,
    until: Callable[..., Any] | None = None,
    **named: object,
) -> Any:
    """Run a flow or task round after round: what it gives in the last one, as ports.

    values: the first inputs of the first round; in each other round the first outputs of the one
    before take their place. named: inputs that are the same in all rounds, not to be written into.
    until: called once, with the ports of a round's outputs; returns the port of bool_ that says
    whether this round is the last one. A flow or task will do. A loop that is not done after
    `max_rounds` fails with RoundLimitExceeded; without `until` it ends then.
    Raises WiringError for inputs or outputs that do not fit.

    >>> @fo.task
    ... def newton(x: float, a: float) -> float:
    ...     return (x + a / x) / 2
    >>> root = fo.loop(newton, 1.0, a=fo.flow_input("a", float), max_rounds=9)
    >>> with fo.slice(root) as s:
    ...     s.run(9.0)
    [3.0]
    """
    if type(max_rounds) is not int or max_rounds < 1:
        raise WiringError(
            f"loop: max_rounds={brief_repr(max_rounds)}; expected a whole number, 1 or more"
        )
    numbers = dict(zip(named, range(1 + len(values), 1 + len(values) + len(named)), strict=True))
    flow, at = _bound("loop: body", body, len(values), numbers)
    _check_state(flow, len(values))
    whole = flow if until is None else _with_until(flow, until)
    _check_depth("loop", whole)
    made = Task(
        name="loop",
        inputs=tuple(port.spec for port in flow.inputs),
        outputs=as_task(whole).outputs[: len(flow.outputs)],
        body=Loop((whole,), len(values), max_rounds, until is not None),
    )
    given = [*values, *named.values()]
    return made(*(given[number - 1] for number in at))


def _branch(where: str, given: object, count: int, named: Mapping[str, int]) -> _Bound:
    """It takes what it has an input for."""
    inputs = given.inputs if isinstance(given, (Flow, Task)) else ()
    names = {port.spec.name if isinstance(port, Port) else port.name for port in inputs}
    return _bound(where, given, count, {n: i for n, i in named.items() if n in names})


def _bound(where: str, given: object, count: int, named: Mapping[str, int]) -> _Bound:
    """Values are numbered from 1 on: `count` by position, then those by name."""
    if not isinstance(given, (Flow, Task)):
        raise WiringError(f"{where}: expected a flow or a task, given {brief_repr(given)}")
    flow = given if isinstance(given, Flow) else _flow_of(given, count, named)
    names = [port.spec.name for port in flow.inputs]
    values = range(1, 1 + count)
    at = bind_arguments(f"{where} {flow.name!r}", names, values, named, error=WiringError)
    return flow, tuple(int(str(number)) for number in at)


def _flow_of(task: Task, count: int, named: Mapping[str, int]) -> Flow:
    """The task as a flow with these inputs; others have their default."""
    types = {spec.name: spec.type for spec in task.inputs}
    spare = (f"value {i}" for i in range(1, 1 + count))
    first = [*types, *spare][:count] if count > len(types) else list(types)[:count]
    ports = [flow_input(name, types.get(name, any_)) for name in first]
    by_name = {name: flow_input(name, types.get(name, any_)) for name in named}
    return flow_output(task(*ports, **by_name), name=task.name)


def _check_state(flow: Flow, count: int) -> None:
    """The first outputs are the first inputs of the next round."""
    if not count:
        raise WiringError("loop: give by position what changes from round to round, at least once")
    if count > len(flow.outputs):
        raise WiringError(
            f"loop: {count} values are given by position, and body {flow.name!r} has "
            f"{len(flow.outputs)} outputs to take their places in the next round; "
            "give by name what stays the same"
        )
    for i, (port, back) in enumerate(zip(flow.inputs[:count], flow.outputs, strict=False), 1):
        if not port.spec.type.accepts(back.spec.type):
            raise WiringError(
                f"loop: output {i} of body {flow.name!r} is its input {port.name!r} in the next "
                f"round: expected {port.spec.type}, given {back.name}: {back.spec.type}"
            )


def _with_until(flow: Flow, until: Callable[..., Any]) -> Flow:
    """The same, with whether it was the last round as another output."""
    if not callable(until):
        raise WiringError(f"loop: until={brief_repr(until)}; expected a flow, a task or a function")
    begun = next(creation_order)
    done = until(*flow.outputs)
    if not isinstance(done, Port) or not bool_.accepts(done.spec.type):
        raise WiringError(f"loop: until has to give one port of bool_, given {done!r}")
    whole = flow_output(*flow.outputs, done, name=flow.name)
    inside = {*flow.inputs, *flow.calls}
    every: list[Port | Call] = [*whole.inputs, *whole.calls]
    for each in every:
        if each not in inside and each.number < begun:
            name = each.name if isinstance(each, Port) else each.task.name
            raise WiringError(
                f"loop: until uses {name!r}, which is outside of the loop: "
                f"make it an input of body {flow.name!r}, and an output too"
            )
    return whole


def _check_depth(name: str, *flows: Flow) -> None:
    known: dict[Flow, int] = {}

    def depth(flow: Flow) -> int:
        if flow not in known:
            bodies = [call.task.body for call in flow.calls]
            known[flow] = max(map(of_body, bodies), default=0)
        return known[flow]

    def of_body(body: object) -> int:
        if isinstance(body, Flow):
            return depth(body)
        return 1 + max(map(depth, body.flows)) if isinstance(body, (Cond, Loop)) else 0

    if max(map(depth, flows)) >= MAX_DEPTH:
        raise WiringError(f"{name}: conds and loops may be {MAX_DEPTH} deep in each other, no more")


def _outputs_of_both(good: Flow, bad: Flow) -> tuple[PortSpec, ...]:
    if len(good.outputs) != len(bad.outputs):
        raise WiringError(
            f"cond: {good.name!r} gives {len(good.outputs)} outputs, {bad.name!r} gives "
            f"{len(bad.outputs)}: both have to give as many"
        )
    return tuple(
        PortSpec(spec.name, _fitting(f"cond: output {i}", ports, narrow=False))
        for i, (spec, *ports) in enumerate(
            zip(as_task(good).outputs, good.outputs, bad.outputs, strict=True), 1
        )
    )


def _fitting(where: str, ports: list[Port], *, narrow: bool) -> PortType:
    """The narrow type, or the wide one, of one or two; one has to accept the other."""
    one, other = ports[0].spec.type, ports[-1].spec.type
    if one.accepts(other):
        return other if narrow else one
    if other.accepts(one):
        return one if narrow else other
    raise WiringError(f"{where} is {one} if true, and {other} if false")
