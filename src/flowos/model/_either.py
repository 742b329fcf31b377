"""Tasks with several bodies, each on an engine of its own."""

from collections.abc import Sequence

from flowos._dataclasses import replace
from flowos.model._bodies import Either, PortSpec, Python, engine_of
from flowos.model._errors import WiringError
from flowos.model._graph import Task
from flowos.model._ports import brief_repr

_OPTIONS = ("needs", "retries", "requeue", "cache", "defaults")


def either(*tasks: Task, name: str | None = None) -> Task:
    """A task with several bodies: those of tasks with equal ports, each on an engine of its own.

    Engines are "python" (a function), "cpu" (`cxx`), "opencl", "cuda", "hdl", "r" and "julia". A
    slice runs what measurement says is the fastest for values of this size, with the copies between
    engines: its first runs take each. `fo.slice(flow, engines=("cpu",))` says which may be taken.
    Within a cond or loop the first of them runs.
    name: by default that of the first. Raises WiringError if ports, engines or options do not fit.

    >>> vector = fo.array(fo.float64, ("n",))
    >>> @fo.task
    ... def twice(x: vector) -> vector:
    ...     return 2 * x
    >>> code = '''extern "C" int twice(const double* x, long n, double* y) {
    ...   for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
    ...   return 0;
    ... }'''
    >>> in_cxx = fo.cxx(code, "twice", inputs={"x": vector}, outputs={"out": vector})
    >>> fo.either(twice, in_cxx)
    <task twice(x: array(float64, ('n',))) -> out: array(float64, ('n',))>
    """
    title: str = name or str(getattr(tasks[0] if tasks else None, "name", ""))
    bodies = _bodies(f"either {title!r}", tasks)
    first = bodies[0]
    body = Either(first.fun, first.limit_seconds, first.keywords, bodies)
    return replace(tasks[0], name=title, body=body)


def _bodies(where: str, tasks: Sequence[Task]) -> tuple[Python, ...]:
    if len(tasks) < 2:
        raise WiringError(f"{where}: give it two tasks or more, each on an engine of its own")
    bodies: list[Python] = []
    for task in tasks:
        if not isinstance(task, Task):
            raise WiringError(f"{where}: expected tasks, given {brief_repr(task)}")
        if not isinstance(task.body, Python) or isinstance(task.body, Either):
            raise WiringError(f"{where}: task {task.name!r} is no function on one engine")
        bodies.append(task.body)
        _refuse_others(where, tasks[0], task)
        if task.body.limit_seconds != bodies[0].limit_seconds:
            raise WiringError(f"{where}: limit_seconds of {task.name!r} and the first differ")
    engines = [engine_of(body) for body in bodies]
    if len(set(engines)) < len(engines):
        twice = next(each for each in engines if engines.count(each) > 1)
        raise WiringError(f"{where}: two of its tasks are on engine {twice!r}")
    return tuple(bodies)


def _refuse_others(where: str, first: Task, task: Task) -> None:
    """Raises WiringError for ports or options that are not those of the first."""
    for kind in ("inputs", "outputs"):
        one, other = (_ports(getattr(each, kind), kind) for each in (first, task))
        if one != other:
            raise WiringError(
                f"{where}: {kind} of {task.name!r} are ({other}), of {first.name!r} ({one})"
            )
    for option in _OPTIONS:
        if getattr(first, option) != getattr(task, option):
            raise WiringError(f"{where}: {option} of {task.name!r} and {first.name!r} differ")


def _ports(ports: Sequence[PortSpec], kind: str) -> str:
    """Outputs go by their place: a function has no names for them."""
    return ", ".join(str(port if kind == "inputs" else port.type) for port in ports)
