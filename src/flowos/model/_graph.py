"""Tasks, their calls, and flows: everything that a flow's outputs depend on.

Immutable, and independent of where it runs. A task may have a flow as its body, so these types are
mutually recursive.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Union

from flowos._dataclasses import dataclass, field
from flowos.model._bodies import Command, Gang, NativeCode, PortSpec, Python
from flowos.model._drawing import dot, shortened, svg
from flowos.model._errors import ValueRefused, WiringError
from flowos.model._extents import Extents, named_extents
from flowos.model._flow_views import Named, flow_graph, flow_text
from flowos.model._hints import port_type
from flowos.model._launch import Needs
from flowos.model._ports import Array, brief_repr
from flowos.model._wiring import (
    bind_arguments,
    bind_call,
    check_body,
    check_options,
    check_ports,
    flat,
    is_name,
    known_sizes,
    not_a_port,
    refuse_equal_names,
    refuse_inner,
    unused_name,
)

_DRAWN = 200  # tasks, at most: notebooks show larger flows as text

creation_order: Iterator[int] = itertools.count()
"""A call is created after everything that it is wired to."""

Body = Union[Python, Command, Gang, "Flow", "Cond", "Loop"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Task:
    """A unit of work that is wired into a flow by calling it with ports.

    defaults: (input, constant if a call does not give it) pairs. retries, requeue, cache: see
    `task`. extents: the named ones of its arrays, on which its ports have to agree.

    >>> fo.command(["date"])()
    <port date: str_>
    """

    name: str
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    body: Body
    needs: Needs = field(default_factory=Needs)
    defaults: tuple[tuple[str, object], ...] = ()
    retries: int = 0
    requeue: bool = True
    cache: bool | str | None = None
    extents: Extents = field(init=False, default=())

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise WiringError(f"a task's name is a text, given {brief_repr(self.name)}")
        if not isinstance(self.needs, Needs):
            raise WiringError(
                f"task {self.name!r}: needs={brief_repr(self.needs)}; use fo.Needs(...)"
            )
        check_ports(self.name, self.inputs, self.outputs)
        check_options(self.name, self.retries, self.requeue, self.cache)
        if isinstance(self.body, (Python, Command, Gang)):
            check_body(self.name, self.body, self.inputs, self.outputs)
        if isinstance(self.body, Python):
            object.__setattr__(self, "extents", named_extents(self.inputs, self.outputs))

    @property
    def checked_extents(self) -> Extents:
        """Those that are checked around its body; a native one looks at its arrays anyway."""
        return () if isinstance(self.body, NativeCode) else self.extents

    @property
    def fusable(self) -> bool:
        """Whether it may run as one with its neighbours: it fails, and ends, together with them."""
        body = None if self.retries or self.cache or not self.requeue else self.body
        return isinstance(body, Python) and body.limit_seconds is None

    def __call__(self, *arguments: object, **named: object) -> "Any":
        """Wire the task: its output port, or a tuple. Raises WiringError if they do not fit."""
        given = bind_call(self.name, self.inputs, arguments, named, self.defaults, self.body)
        call = Call(self, tuple(map(_argument, itertools.repeat(self), self.inputs, given)))
        ports = call.ports()
        return ports[0] if len(ports) == 1 else ports

    def __repr__(self) -> str:
        return f"<task {self}>"

    def __str__(self) -> str:
        takes, gives = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"{self.name}({takes}) -> {gives}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """One use of a task in a flow."""

    task: Task
    arguments: tuple["Port | Constant", ...]
    number: int = field(default_factory=lambda: next(creation_order))

    @property
    def known_sizes(self) -> dict[str, int]:
        """Of named extents, before a run. Raises WiringError if its arguments disagree."""
        if not self.task.extents:
            return {}
        given = [a.value if isinstance(a, Constant) else a.spec.type for a in self.arguments]
        return known_sizes(self.task.name, self.task.extents, given)

    def ports(self) -> "tuple[Port, ...]":
        """New ones, of what it gives."""
        sizes = self.known_sizes
        return tuple(_output_port(self, i, sizes) for i in range(len(self.task.outputs)))

    def __reduce__(self) -> tuple[object, ...]:
        """A copy is created after the things it is wired to, and gets a number of its own."""
        return Call, (self.task, self.arguments)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Port:
    """One output of a call, or (`call` is None) an input of a flow. `number`: creation order."""

    spec: PortSpec
    call: Call | None
    index: int
    number: int

    @property
    def name(self) -> str:
        """Name for people: an input's name, a task's, or task.output if it has several outputs."""
        if self.call is None:
            return self.spec.name
        task = self.call.task
        return task.name if len(task.outputs) == 1 else f"{task.name}.{self.spec.name}"

    @property
    def source(self) -> "Call | Port":
        """What gives it."""
        return self.call or self

    def text(self, names: Mapping[Named, str]) -> str:
        """names: of the calls of its flow."""
        if self.call is None:
            return self.spec.name
        several = len(self.call.task.outputs) > 1
        return f"{names[self.call]}.{self.spec.name}" if several else names[self.call]

    def __repr__(self) -> str:
        return f"<{'input' if self.call is None else 'port'} {self.name}: {self.spec.type}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _new_port, (self.spec, self.call, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant argument in a flow."""

    value: object
    source: ClassVar[None] = None

    def text(self, _: Mapping[Named, str]) -> str:
        return shortened(repr(self.value))


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """Inputs in creation order, outputs as given, calls in an executable order.

    nodes: its calls and inputs, and those of the flows that it uses as tasks.

    >>> x = fo.flow_input("x", int)
    >>> flow = fo.flow_output(fo.command(["sleep", fo.In("x")], inputs={"x": int})(x), name="f")
    >>> flow(1), flow.task
    (<port f: str_>, <task f(x: int64) -> sleep: str_>)
    >>> picture, for_graphviz = flow.svg(), flow.dot()
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
        """One value per input: in the order in which the inputs were created, or by name."""
        if not named and len(values) == len(self.inputs):
            return tuple(values)
        names = [p.spec.name for p in self.inputs]
        return bind_arguments(
            f"run: flow {self.name!r}",
            names,
            values,
            named,
            error=ValueRefused,
            hint=", on which its outputs depend",
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles call by call, so recursion is as deep as flows are nested, not as task chains."""
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
        return flow_text(self)

    def __repr__(self) -> str:
        names = ", ".join(str(p.spec) for p in self.inputs)
        return f"<flow {self.name}({names}), {len(self.calls)} tasks>"

    def dot(self) -> str:
        """The drawing in Graphviz's language."""
        return dot(flow_graph(self))

    def svg(self) -> str:
        """The drawing as one self-contained SVG."""
        return svg(flow_graph(self))

    def _repr_html_(self) -> str | None:
        return self.svg() if len(self.calls) <= _DRAWN else None


@dataclass(frozen=True, slots=True, eq=False)
class Cond:
    """One of two flows is run: the first if the task's first input is true.

    takes: which of the task's inputs each of them takes, by position.
    """

    flows: tuple[Flow, Flow]
    takes: tuple[tuple[int, ...], tuple[int, ...]]

    def about(self) -> tuple[str, str]:
        """Words for each flow."""
        return "true", "false"


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A flow is run round after round: its first `state` outputs are inputs of the next one.

    until: its last output says whether this round is the last one, and is no output of the task.
    """

    flows: tuple[Flow]
    state: int
    max_rounds: int
    until: bool

    def about(self) -> tuple[str]:
        """Words for the flow."""
        return (f"{'up to ' if self.until else ''}{self.max_rounds} rounds",)


def _inner(body: Body) -> tuple[Flow, ...]:
    if isinstance(body, Flow):
        return (body,)
    return body.flows if isinstance(body, (Cond, Loop)) else ()


def _rewired(
    name: str,
    inputs: Sequence[PortSpec],
    wired: Sequence[tuple[Task, Sequence[Any]]],
    outputs: Sequence[Any],
) -> Flow:
    """Rebuild a flow from `Flow.__reduce__`; a place is an input or (call, output)."""
    ports = [_new_port(spec, None, 0) for spec in inputs]
    calls: list[Call] = []

    def port_at(place: Any) -> Any:
        if isinstance(place, int):
            return ports[place]
        return calls[place[0]].ports()[place[1]] if isinstance(place, tuple) else place

    for task, places in wired:
        calls.append(Call(task, tuple(map(port_at, places))))
    return flow_output(*map(port_at, outputs), name=name)


def as_task(flow: Flow, name: str | None = None) -> Task:
    """A task whose body is the flow."""
    specs: list[PortSpec] = []
    for port in flow.outputs:
        specs.append(PortSpec(unused_name(port.name, {s.name for s in specs}), port.spec.type))
    inputs = tuple(p.spec for p in flow.inputs)
    return Task(name=name or flow.name, inputs=inputs, outputs=tuple(specs), body=flow)


def flow_input(name: str, type: object) -> Port:
    """An input of the flows that use it. `run(*values)` binds inputs in creation order.

    >>> fo.flow_input("n", fo.int64)
    <input n: int64>
    """
    if not is_name(name):
        raise WiringError(f"flow_input: its name is a text, given {brief_repr(name)}; it is first")
    return _new_port(PortSpec(name, port_type(f"flow_input {name!r}", type)), None, 0)


def flow_output(*ports: Any, name: str = "flow") -> "Flow":
    """The flow that computes these ports, with everything they depend on.

    Raises WiringError if two of its inputs have one name, or if a port belongs to another flow that
    this flow uses as a task.

    >>> x = fo.flow_input("x", fo.array(fo.float64))
    >>> fo.flow_output(fo.kernels.prefix_sum(fo.kernels.sort(x)), name="sums")
    <flow sums(x: array(float64, any)), 2 tasks>
    """
    outputs = tuple(flat(ports))
    if not outputs:
        raise WiringError("flow_output: give at least one port")
    for given in (each for each in outputs if not isinstance(each, Port)):
        raise WiringError(not_a_port(given, given.inputs if isinstance(given, Task) else None))
    calls, inputs = _reach(outputs)
    refuse_equal_names(port.spec.name for port in inputs)
    inside = frozenset().union(*(flow.nodes for c in calls for flow in _inner(c.task.body)))
    refuse_inner(calls, inputs, inside)
    return Flow(name, inputs, outputs, calls, inside.union(calls, inputs))


def _new_port(spec: PortSpec, call: Call | None, index: int) -> Port:
    return Port(spec, call, index, next(creation_order))


def _output_port(call: Call, index: int, sizes: Mapping[str, int]) -> Port:
    spec = call.task.outputs[index]
    if sizes and isinstance(spec.type, Array):
        spec = PortSpec(spec.name, spec.type.with_sizes(sizes))
    return _new_port(spec, call, index)


def _argument(task: Task, spec: PortSpec, given: object) -> Port | Constant:
    where = f"task {task.name!r}, input {spec.name!r}"
    if isinstance(given, Port):
        if not spec.type.accepts(given.spec.type):
            raise WiringError(
                f"{where}: expected {spec.type}, given {given.name}: {given.spec.type}"
            )
        return given
    if isinstance(given, Task) or (isinstance(given, tuple) and _has_port(given)):
        raise WiringError(f"{where}: expected one port or value of {spec.type}, given {given!r}")
    complaint = spec.type.check(given)
    if complaint:
        raise WiringError(f"{where}: {complaint}")
    return Constant(given)


def _has_port(values: tuple[object, ...]) -> bool:
    return any(isinstance(v, Port) for v in values)


def _reach(outputs: Iterable[Port]) -> tuple[tuple[Call, ...], tuple[Port, ...]]:
    """Calls and inputs that the outputs depend on, each in creation order."""
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
