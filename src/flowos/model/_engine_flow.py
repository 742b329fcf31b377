"""Flows in which a value says on which engine tasks with several bodies run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flowos._dataclasses import dataclass, replace
from flowos.model._bodies import Either, NativeCode, PortSpec, Python, engine_of
from flowos.model._errors import SliceRefused
from flowos.model._graph import (
    Call,
    Cond,
    Constant,
    Flow,
    Loop,
    Port,
    Task,
    flow_input,
    flow_output,
)
from flowos.model._ports import any_
from flowos.model._wiring import unused_name

ValueSource = tuple[int, int]
"""A site, and which of its outputs."""
_Value = Port | Constant


@dataclass(frozen=True, slots=True)
class EngineSite:
    """A call of a task with several bodies.

    sources: of each input the site that gives it, if one does. read: of each output, whether
    something else than a site takes it too.
    """

    label: str
    task: Task
    bodies: tuple[Python, ...]
    sources: tuple[ValueSource | None, ...]
    read: tuple[bool, ...] = ()

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(map(engine_of, self.bodies))


SiteBody = Callable[[int, Task, tuple[Python, ...]], Callable[..., Any]]
"""Makes the function of a site. It takes the task's values, then `ChosenEngines`, and gives the
task's outputs, then a `SiteNote`."""


@dataclass(frozen=True, slots=True)
class EngineFlow:
    """A flow whose last input is `ChosenEngines`; last it gives a `SiteNote` of each site."""

    flow: Flow
    sites: tuple[EngineSite, ...]


def with_engines(flow: Flow, allowed: Sequence[str] | None, body: SiteBody) -> EngineFlow:
    """The same flow, whose tasks have the bodies for these engines, in this order; None: for all.

    A task that is left with one has that; those in conds and loops have the first. Raises
    SliceRefused if a task has none.
    """
    if not _has_either(flow):
        return EngineFlow(flow, ())
    opened = _Opened(allowed, body, flow)
    return EngineFlow(opened.rewired(), opened.read_sites())


def with_chosen(flow: Flow, allowed: Sequence[str] | None, engines: Sequence[str]) -> Flow:
    """The same flow, whose sites (of `with_engines`) have the bodies for these engines alone."""
    return _Chosen(allowed, flow, engines).rewired()


def _has_either(flow: Flow) -> bool:
    """In any depth, so no recursion."""
    left, seen = [flow], {id(flow)}
    while left:
        for task in {id(call.task): call.task for call in left.pop().calls}.values():
            if isinstance(task.body, Either):
                return True
            inner = [each for each in _flows(task) if id(each) not in seen]
            seen.update(map(id, inner))
            left += inner
    return False


def _flows(task: Task) -> tuple[Flow, ...]:
    if isinstance(task.body, Flow):
        return (task.body,)
    return task.body.flows if isinstance(task.body, (Cond, Loop)) else ()


class _Opened:
    """The calls of a flow, wired anew: those of flows in it that have sites are opened.

    Without `body` each task has its preferred one, and there are no sites.
    """

    def __init__(self, allowed: Sequence[str] | None, body: SiteBody | None, flow: Flow) -> None:
        self.allowed, self.body, self.flow = allowed, body, flow
        self.sites: list[EngineSite] = []
        self.notes: list[Port] = []
        self._places: dict[Port, ValueSource] = {}
        self._read: set[ValueSource] = set()
        name = unused_name("engines", {port.name for port in flow.inputs})
        self._engines = flow_input(name, any_)

    def rewired(self) -> Flow:
        """With all inputs of the flow: some may reach no output once flows in it are opened."""
        inputs = self.flow.inputs
        ports = self._wired(self.flow, {port: port for port in inputs}, "")
        self._reads(ports)
        outputs = [port if isinstance(port, Port) else _constant(port) for port in ports]
        wired = flow_output(*outputs, *self.notes, name=self.flow.name)
        return replace(wired, inputs=(*inputs, self._engines) if self.sites else inputs)

    def read_sites(self) -> tuple[EngineSite, ...]:
        return tuple(
            replace(site, read=tuple((i, k) in self._read for k in range(len(site.task.outputs))))
            for i, site in enumerate(self.sites)
        )

    def _wired(self, flow: Flow, given: Mapping[Port, _Value], prefix: str) -> list[_Value]:
        made: dict[tuple[Call, int], _Value] = {}

        def value(port: _Value) -> _Value:
            if isinstance(port, Constant):
                return port
            return given[port] if port.call is None else made[port.call, port.index]

        for call in flow.calls:
            task, taken = call.task, tuple(map(value, call.arguments))
            if isinstance(task.body, Flow) and _has_either(task.body):
                inner = dict(zip(task.body.inputs, taken, strict=True))
                outputs = self._wired(task.body, inner, f"{prefix}{task.name}/")
            else:
                named = replace(task, name=prefix + task.name) if prefix else task
                outputs = list(self._called(named, taken))
            made.update({(call, i): each for i, each in enumerate(outputs)})
        return [value(port) for port in flow.outputs]

    def _called(self, task: Task, taken: tuple[_Value, ...]) -> Sequence[Port]:
        if isinstance(task.body, Either) and self.body is not None:
            bodies = _bodies(task, self.allowed)
            if len(bodies) > 1:
                return self._site(task, bodies, taken, self.body)
        self._reads(taken)
        return Call(_forced(task, self.allowed), taken).ports()

    def _site(
        self, task: Task, bodies: tuple[Python, ...], taken: tuple[_Value, ...], body: SiteBody
    ) -> Sequence[Port]:
        number = len(self.sites)
        sources = tuple(self._places.get(v) if isinstance(v, Port) else None for v in taken)
        label = unused_name(task.name, {site.label for site in self.sites})
        self.sites.append(EngineSite(label, task, bodies, sources))
        choosing = replace(
            task,
            inputs=(*task.inputs, PortSpec(_free("engines", task.inputs), any_)),
            outputs=(*task.outputs, PortSpec(_free("note", task.outputs), any_)),
            body=NativeCode(body(number, task, bodies), bodies[0].limit_seconds, engine="either"),
        )
        *outputs, note = Call(choosing, (*taken, self._engines)).ports()
        self.notes.append(note)
        self._places.update({port: (number, i) for i, port in enumerate(outputs)})
        return outputs

    def _reads(self, values: Iterable[_Value]) -> None:
        ports = (value for value in values if isinstance(value, Port))
        self._read.update(self._places[port] for port in ports if port in self._places)


class _Chosen(_Opened):
    """Whose sites are tasks with one body each."""

    def __init__(self, allowed: Sequence[str] | None, flow: Flow, engines: Sequence[str]) -> None:
        super().__init__(allowed, None, flow)
        self._chosen = iter(engines)

    def _called(self, task: Task, taken: tuple[_Value, ...]) -> Sequence[Port]:
        if isinstance(task.body, Either) and len(_bodies(task, self.allowed)) > 1:
            task = _forced(task, (next(self._chosen),))
        return super()._called(task, taken)


def _bodies(task: Task, allowed: Sequence[str] | None) -> tuple[Python, ...]:
    """Those that a task may have, the preferred first."""
    assert isinstance(task.body, Either)
    if allowed is None:
        return task.body.bodies
    found = {engine_of(body): body for body in task.body.bodies}
    bodies = tuple(found[engine] for engine in allowed if engine in found)
    if not bodies:
        have, asked = ", ".join(found), ", ".join(allowed)
        raise SliceRefused(f"slice: task {task.name!r} has bodies for {have}; engines are {asked}")
    return bodies


def _forced(task: Task, allowed: Sequence[str] | None) -> Task:
    """The same with the preferred body, also in the flows within it."""
    body = task.body
    if isinstance(body, Either):
        return replace(task, body=_bodies(task, allowed)[0])
    if not any(map(_has_either, _flows(task))):
        return task
    flows = tuple(_Opened(allowed, None, flow).rewired() for flow in _flows(task))
    assert isinstance(body, (Cond, Loop))  # flows in a flow are opened
    return replace(task, body=replace(body, flows=flows))  # type: ignore[arg-type]


def _free(name: str, ports: Sequence[PortSpec]) -> str:
    return unused_name(name, {port.name for port in ports})


def _constant(value: Constant) -> Port:
    """As a task gives it."""
    port = PortSpec("value", any_)
    task = Task(name="constant", inputs=(port,), outputs=(port,), body=Python(_same))
    (given,) = Call(task, (value,)).ports()
    return given


def _same(value: object) -> object:
    return value
