"""A flow: what is reachable from its outputs. Immutable; says nothing about where it runs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flowos.model._drawing import dot, svg, text
from flowos.model._errors import ValueRefused, WiringError
from flowos.model._hints import port_type
from flowos.model._launch import Needs
from flowos.model._ports import shown
from flowos.model._tasks import Call, Constant, Port, PortSpec, Task, is_name, new_input, new_port

_DRAWN = 200
"""Notebooks draw flows of up to this many tasks; larger ones are shown as text."""


def flow_input(name: str, type: object) -> Port:
    """An input of the flows that are wired from it. `run(*values)` binds in order of making."""
    if not is_name(name):
        raise WiringError(f"flow_input: its name is a text, given {shown(name)}")
    return new_input(name, port_type(f"flow_input {name!r}", type))


def flow_output(*ports: Any, name: str = "flow") -> "Flow":
    """The flow that computes these ports: all that is reachable from them.

    WiringError for two reachable inputs of one name, and for ports that are inside another flow
    which this flow uses as a task.
    """
    outputs = tuple(_flat(ports))
    if not outputs:
        raise WiringError("flow_output: give at least one port")
    for given in outputs:
        if not isinstance(given, Port):
            raise WiringError(f"flow_output: expected ports, given {shown(given)}")
    calls, inputs = _reach(outputs)
    _refuse_equal_names(inputs)
    inside = frozenset().union(*(c.task.body.nodes for c in calls if isinstance(c.task.body, Flow)))
    _refuse_inner(calls, inputs, inside)
    return Flow(name, inputs, outputs, calls, inside.union(calls, inputs))


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """Inputs in order of making, outputs in order given, calls in an order in which they can run.

    nodes: its calls and inputs, and those inside the flows that it uses as tasks.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    calls: tuple[Call, ...]
    nodes: frozenset[Call | Port] = field(default=frozenset())

    @cached_property
    def task(self) -> Task:
        """The flow as a task of another."""
        return as_task(self)

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Wire this flow into another: its output port, or a tuple of them."""
        return self.task(*arguments, **named)

    def bind(self, values: Sequence[object], named: dict[str, object]) -> tuple[object, ...]:
        """One value per input: in the order in which the inputs were made, or by name."""
        if not named and len(values) == len(self.inputs):
            return tuple(values)
        return _bind_names([p.spec.name for p in self.inputs], values, named)

    def __reduce__(self) -> tuple[object, ...]:
        """Call by call: as deep as flows are in flows, and not as tasks follow each other."""
        inputs = {port: i for i, port in enumerate(self.inputs)}
        calls = {call: i for i, call in enumerate(self.calls)}

        def place(given: Port | Constant) -> object:
            if not isinstance(given, Port):
                return given
            return inputs[given] if given.call is None else (calls[given.call], given.index)

        wired = [(call.task, tuple(map(place, call.arguments))) for call in self.calls]
        specs = tuple(port.spec for port in self.inputs)
        return _rewired, (self.name, specs, wired, tuple(map(place, self.outputs)))

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        names = ", ".join(str(p.spec) for p in self.inputs)
        return f"<flow {self.name}({names}), {len(self.calls)} tasks>"

    def dot(self) -> str:
        """The drawing in Graphviz's language."""
        return dot(self)

    def svg(self) -> str:
        """The drawing as one self-contained SVG."""
        return svg(self)

    def _repr_html_(self) -> str | None:
        return svg(self) if len(self.calls) <= _DRAWN else None


def _rewired(
    name: str,
    inputs: Sequence[PortSpec],
    wired: Sequence[tuple[Task, Sequence[Any]]],
    outputs: Sequence[Any],
) -> Flow:
    """A flow from what `Flow.__reduce__` says of one: a place is an input or (call, output)."""
    ports = [new_port(spec, None, 0) for spec in inputs]
    calls: list[Call] = []

    def port_at(place: Any) -> Any:
        if isinstance(place, int):
            return ports[place]
        if isinstance(place, tuple):
            call = calls[place[0]]
            return new_port(call.task.outputs[place[1]], call, place[1])
        return place

    for task, places in wired:
        calls.append(Call(task, tuple(map(port_at, places))))
    return flow_output(*map(port_at, outputs), name=name)


def as_task(flow: Flow, name: str | None = None, needs: Needs | None = None) -> Task:
    """A task whose body is the flow. Needs belong to the flow's own tasks."""
    if needs is not None:
        raise WiringError(f"flow {flow.name!r} as a task: its own tasks say what they need")
    specs: list[PortSpec] = []
    for port in flow.outputs:
        specs.append(PortSpec(_unused(port.name, {s.name for s in specs}), port.spec.type))
    inputs = tuple(p.spec for p in flow.inputs)
    return Task(name=name or flow.name, inputs=inputs, outputs=tuple(specs), body=flow)


def _unused(name: str, taken: set[str]) -> str:
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}#{count}"
    return unique


def _flat(ports: Iterable[Any]) -> Iterator[Any]:
    for port in ports:
        if isinstance(port, (tuple, list)):
            yield from _flat(port)
        else:
            yield port


def _reach(outputs: Iterable[Port]) -> tuple[tuple[Call, ...], tuple[Port, ...]]:
    """Calls and inputs that the outputs depend on, each in order of making."""
    calls: set[Call] = set()
    inputs: set[Port] = set()
    waiting = list(outputs)
    while waiting:
        port = waiting.pop()
        if port.call is None:
            inputs.add(port)
        elif port.call not in calls:
            calls.add(port.call)
            waiting.extend(a for a in port.call.arguments if isinstance(a, Port))
    return (
        tuple(sorted(calls, key=lambda c: c.number)),
        tuple(sorted(inputs, key=lambda p: p.number)),
    )


def _refuse_equal_names(inputs: Iterable[Port]) -> None:
    seen: set[str] = set()
    for port in inputs:
        if port.spec.name in seen:
            raise WiringError(f"two inputs of the flow are named {port.spec.name!r}: rename one")
        seen.add(port.spec.name)


def _refuse_inner(
    calls: Sequence[Call], inputs: Iterable[Port], inside: frozenset[Call | Port]
) -> None:
    for call in reversed(calls):  # the last one is what was taken from inside
        if call in inside:
            raise WiringError(
                f"task {call.task.name!r} is inside a flow that is used here as a task: "
                "make its result an output of that flow"
            )
    for port in inputs:
        if port in inside:
            raise WiringError(
                f"input {port.name!r} belongs to a flow that is used here as a task: "
                f"make another with fo.flow_input({port.name!r}, ...)"
            )


def _bind_names(
    names: Sequence[str], values: Sequence[object], named: dict[str, object]
) -> tuple[object, ...]:
    takes = f"{len(names)} ({', '.join(names)})" if names else "none"
    if len(values) > len(names):
        raise ValueRefused(f"run: {len(values)} values given, the flow's inputs are {takes}")
    bound = dict(zip(names, values, strict=False))
    for name, value in named.items():
        if name not in names:
            raise ValueRefused(
                f"run: {name!r} is no input that the flow's outputs depend on; they are {takes}"
            )
        if name in bound:
            raise ValueRefused(f"run: input {name!r} is given twice")
        bound[name] = value
    missing = [name for name in names if name not in bound]
    if missing:
        raise ValueRefused(f"run: no value for {', '.join(missing)}; the flow's inputs are {takes}")
    return tuple(bound[name] for name in names)
