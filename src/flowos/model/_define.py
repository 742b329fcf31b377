"""Defines tasks from a dictionary, from a decorated function, or from a flow."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack, cast, get_args, get_origin, overload

from flowos._signatures import with_keywords
from flowos.model._bodies import PortSpec, Python
from flowos.model._errors import WiringError
from flowos.model._graph import Flow, Task, as_task
from flowos.model._hints import port_type
from flowos.model._launch import Needs
from flowos.model._ports import brief_repr
from flowos.model._wiring import needs_of

_KEYS = ("task_name", "iport_nametypes", "oport_nametypes", "fun")


class TaskKeywords(TypedDict, total=False):
    """Options of a task, each described at `task`. `_finished` is what takes them in."""

    name: str | None
    needs: Needs | Sequence[Needs] | None
    retries: int
    requeue: bool
    limit_seconds: float | None
    cache: bool | str | None


_DEFAULTS = TaskKeywords(
    name=None, needs=None, retries=0, requeue=True, limit_seconds=None, cache=None
)


@overload
def task(
    definition: None = None, /, **options: Unpack[TaskKeywords]
) -> Callable[[Callable[..., Any]], Task]: ...
@overload
def task(
    definition: Mapping[str, Any] | Flow | Callable[..., Any],
    /,
    **options: Unpack[TaskKeywords],
) -> Task: ...
@with_keywords(TaskKeywords, _DEFAULTS)
def task(
    definition: Mapping[str, Any] | Flow | Callable[..., Any] | None = None,
    /,
    **options: Unpack[TaskKeywords],
) -> Task | Callable[[Callable[..., Any]], Task]:
    """Make a task from a dictionary, from a typed function (also as a decorator), or from a flow.

    The dictionary has 'task_name', 'iport_nametypes', 'oport_nametypes' and 'fun', and may have the
    options below but for the name. A port is a type or a (name, type) pair; ports are one of these
    or a tuple of them.
    name: instead of the function's own. needs: cores, memory and so on, one core by default; of a
    tuple of them the first one that its node has, and that is free.
    retries: how often it is run again, at once and perhaps on another worker, after it raised, went
    over its limit or lost its worker. Not after NoRetry, nor if its port refuses the result. Its
    second attempt, also one after a lost node, has FLOWOS_ATTEMPT=2 if it is a command, and so on.
    requeue: False runs it at most once although its node is lost: a run in which it may have begun
    then ends with WorkerLost, and no retry follows on a lost worker. Else that run begins anew.
    limit_seconds: after this long its worker process is ended and the task fails with
    TimeLimitExceeded. Threads cannot be ended, so it needs a slice with workers="process".
    cache: True keeps its results in $XDG_CACHE_HOME/flowos/results for all slices. They depend on
    its code and what that names in your own modules, on its values and files (name and content), on
    Python and the image; what it reads otherwise is not seen. "v2", any text: the same, and another
    text is another task; what its code names and has no digest is left out. False: not kept in a
    slice's journal, for what gives another result each time.
    Raises WiringError for an invalid definition or option.

    >>> @fo.task(retries=2)
    ... def area(width: float, height: float = 1.0) -> float:
    ...     return width * height
    >>> area
    <task area(width: float64, height: float64) -> out: float64>
    >>> with fo.slice(area(fo.flow_input("width", float), 2.0)) as s:
    ...     s.run(3.0)
    [6.0]
    """
    unknown = sorted(options.keys() - TaskKeywords.__annotations__.keys())
    if unknown:
        known = ", ".join(TaskKeywords.__annotations__)
        raise WiringError(f"task: there is no option {unknown[0]!r}; the options are {known}")
    if definition is None:
        return lambda fun: _from_function(fun, options)
    if isinstance(definition, Flow):
        return _from_flow(definition, options)
    if isinstance(definition, Mapping):
        return _from_dictionary(definition, options)
    return _from_function(definition, options)


def _from_flow(flow: Flow, options: TaskKeywords) -> Task:
    """The name is its own; all else is of its tasks."""
    extra = [key for key, value in options.items() if value and key not in ("name", "requeue")]
    extra += ["requeue"] * (not options.get("requeue", True))
    if extra:
        raise WiringError(
            f"flow {flow.name!r} as a task takes no {extra[0]}: its own tasks say what they need"
        )
    return as_task(flow, options.get("name"))


def _from_dictionary(given: Mapping[str, Any], options: TaskKeywords) -> Task:
    title = options.get("name") or given.get("task_name", "?")
    where = f"task {title!r}"
    more = [key for key in TaskKeywords.__annotations__ if key != "name"]
    missing = [key for key in _KEYS if key not in given]
    unknown = [key for key in given if key not in (*_KEYS, *more)]
    if missing or unknown:
        wrong = [f"{k!r} is missing" for k in missing] + [f"{k!r} is unknown" for k in unknown]
        raise WiringError(f"{where}: {', '.join(wrong)}; the keys are {', '.join(_KEYS)}")
    fun = _function(where, given["fun"])
    inputs = _ports_given(given["iport_nametypes"])
    names = _parameter_names(fun, len(inputs))
    own = {key: given[key] for key in more if key in given}
    return _finished(
        title,
        fun,
        _specs(where, inputs, names),
        _specs(where, outputs := _ports_given(given["oport_nametypes"]), _outs(outputs)),
        cast("TaskKeywords", {**own, **options}),
    )


def _from_function(fun: Any, options: TaskKeywords) -> Task:
    title = options.get("name") or str(getattr(_inner(fun), "__name__", "task"))
    where = f"task {title!r}"
    _function(where, fun)
    parameters = _parameters(where, fun)
    hints = _hints(where, fun)
    inputs = tuple(_input(where, parameter, hints) for parameter in parameters)
    return _finished(
        title,
        fun,
        inputs,
        _returned(where, hints.get("return", inspect.Parameter.empty)),
        options,
        tuple((p.name, p.default) for p in parameters if p.default is not p.empty),
        tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY),
    )


def _inner(fun: Any) -> Any:
    """What a partial one calls."""
    return _inner(fun.func) if isinstance(fun, partial) else fun


def _parameters(where: str, fun: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError) as error:
        raise WiringError(
            f"{where}: it does not say what it takes ({error}); call it in a function with types"
        ) from error


def _hints(where: str, fun: Callable[..., Any]) -> dict[str, Any]:
    said = _inner(fun)
    if not isinstance(said, type) and not hasattr(said, "__annotations__"):
        said = type(said).__call__  # an object that is called
    try:
        return inspect.get_annotations(said, eval_str=True)
    except Exception as error:
        raise WiringError(
            f"{where}: its type hints cannot be read ({type(error).__name__}: {error})"
        ) from error


def _input(where: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> PortSpec:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise WiringError(
            f"{where}: parameter {name!r} takes any number of values, and a task has as many "
            "inputs as it has: make it a list or a dict"
        )
    if name not in hints:
        raise WiringError(f"{where}: parameter {name!r} has no type; use fo.any_")
    type_ = port_type(f"{where}, parameter {name!r}", hints[name])
    if parameter.default is not parameter.empty:
        complaint = type_.check(parameter.default)
        if complaint:
            raise WiringError(f"{where}, default of {name!r}: {complaint}")
    return PortSpec(name, type_)


def _finished(
    title: str,
    fun: Callable[..., Any],
    inputs: tuple[PortSpec, ...],
    outputs: tuple[PortSpec, ...],
    options: TaskKeywords,
    defaults: tuple[tuple[str, object], ...] = (),
    keywords: tuple[str, ...] = (),
) -> Task:
    return Task(
        name=title,
        inputs=inputs,
        outputs=outputs,
        body=Python(fun, limit_seconds=options.get("limit_seconds"), keywords=keywords),
        needs=needs_of(title, options.get("needs")),
        defaults=defaults,
        retries=options.get("retries", 0),
        requeue=options.get("requeue", True),
        cache=options.get("cache"),
    )


def _function(where: str, fun: Any) -> Callable[..., Any]:
    if isinstance(fun, Task) or not callable(fun):
        raise WiringError(f"{where}: expected a function, given {brief_repr(fun)}")
    if inspect.iscoroutinefunction(fun) or inspect.isgeneratorfunction(fun):
        raise WiringError(f"{where}: expected a plain function, given an async or generator one")
    return fun  # type: ignore[no-any-return]


def _parameter_names(fun: Callable[..., Any], count: int) -> list[str]:
    """The function's parameter names if it has `count` positional ones, else in1, in2, ..."""
    try:
        parameters = inspect.signature(fun).parameters.values()
        named = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):  # some builtins have no signature
        named = []
    return named if len(named) == count else [f"in{i + 1}" for i in range(count)]


def _outs(ports: Sequence[object]) -> list[str]:
    return ["out"] if len(ports) == 1 else [f"out{i + 1}" for i in range(len(ports))]


def _ports_given(given: Any) -> Sequence[Any]:
    """One port, or a tuple of ports; a (name, type) pair is one port."""
    if isinstance(given, (tuple, list)) and not _is_pair(given):
        return given
    return (given,)


def _is_pair(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str)


def _specs(where: str, ports: Sequence[Any], names: Sequence[str]) -> tuple[PortSpec, ...]:
    specs = []
    for port, spare in zip(ports, names, strict=True):
        name, type_ = port if _is_pair(port) else (spare, port)
        specs.append(PortSpec(name, port_type(f"{where}, port {name!r}", type_)))
    return tuple(specs)


def _returned(where: str, hint: Any) -> tuple[PortSpec, ...]:
    if hint is inspect.Parameter.empty:
        raise WiringError(f"{where}: say what it returns, such as -> fo.int64 or -> fo.any_")
    if hint is None:
        raise WiringError(f"{where}: it returns None, so no flow could reach it")
    parts = get_args(hint) if get_origin(hint) is tuple else (hint,)
    if Ellipsis in parts:  # a tuple of any length is one value
        parts = (hint,)
    types = [port_type(f"{where}, return", part) for part in parts]
    return tuple(map(PortSpec, _outs(types), types))
