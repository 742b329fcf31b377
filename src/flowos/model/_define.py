"""Defines tasks from a dictionary, from a decorated function, or from a flow."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_origin, overload

from flowos.model._bodies import PortSpec, Python
from flowos.model._errors import WiringError
from flowos.model._graph import Flow, Task, as_task
from flowos.model._hints import port_type
from flowos.model._launch import Needs
from flowos.model._ports import brief_repr

_KEYS = ("task_name", "iport_nametypes", "oport_nametypes", "fun")


@overload
def task(
    definition: None = None, /, *, name: str | None = None, needs: Needs | None = None
) -> Callable[[Callable[..., Any]], Task]: ...
@overload
def task(
    definition: Mapping[str, Any] | Flow | Callable[..., Any],
    /,
    *,
    name: str | None = None,
    needs: Needs | None = None,
) -> Task: ...
def task(
    definition: Mapping[str, Any] | Flow | Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    needs: Needs | None = None,
) -> Task | Callable[[Callable[..., Any]], Task]:
    """Make a task from a dictionary, from a typed function (also as a decorator), or from a flow.

    The dictionary has 'task_name', 'iport_nametypes', 'oport_nametypes' and 'fun'. A port is a type
    or a (name, type) pair; ports are one of these or a tuple of them. Raises WiringError for an
    invalid definition.
    """
    if definition is None:
        return lambda fun: _from_function(fun, name, needs)
    if isinstance(definition, Flow):
        return as_task(definition, name, needs)
    if isinstance(definition, Mapping):
        return _from_dictionary(definition, name, needs)
    return _from_function(definition, name, needs)


def _from_dictionary(given: Mapping[str, Any], name: Any, needs: Needs | None) -> Task:
    title = name if name is not None else given.get("task_name", "?")
    where = f"task {title!r}"
    missing = [key for key in _KEYS if key not in given]
    unknown = [key for key in given if key not in (*_KEYS, "needs")]
    if missing or unknown:
        wrong = [f"{k!r} is missing" for k in missing] + [f"{k!r} is unknown" for k in unknown]
        raise WiringError(f"{where}: {', '.join(wrong)}; the keys are {', '.join(_KEYS)}")
    fun = _function(where, given["fun"])
    inputs = _ports_given(given["iport_nametypes"])
    names = _parameter_names(fun, len(inputs))
    return Task(
        name=title,
        inputs=_specs(where, inputs, names),
        outputs=_specs(where, outputs := _ports_given(given["oport_nametypes"]), _outs(outputs)),
        body=Python(fun),
        needs=needs or given.get("needs") or Needs(),
    )


def _from_function(fun: Any, name: str | None, needs: Needs | None) -> Task:
    title = name or str(getattr(fun, "__name__", "task"))
    where = f"task {title!r}"
    _function(where, fun)
    hints = inspect.get_annotations(fun, eval_str=True)
    inputs, defaults = [], []
    for parameter in inspect.signature(fun).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise WiringError(f"{where}: parameter {parameter.name!r} has to be a positional one")
        if parameter.name not in hints:
            raise WiringError(f"{where}: parameter {parameter.name!r} has no type; use fo.any_")
        type_ = port_type(f"{where}, parameter {parameter.name!r}", hints[parameter.name])
        inputs.append(PortSpec(parameter.name, type_))
        if parameter.default is not parameter.empty:
            complaint = type_.check(parameter.default)
            if complaint:
                raise WiringError(f"{where}, default of {parameter.name!r}: {complaint}")
            defaults.append((parameter.name, parameter.default))
    return Task(
        name=title,
        inputs=tuple(inputs),
        outputs=_returned(where, hints.get("return", inspect.Parameter.empty)),
        body=Python(fun),
        needs=needs or Needs(),
        defaults=tuple(defaults),
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
    parts = get_args(hint) if get_origin(hint) is tuple else hint
    if not isinstance(parts, tuple):
        parts = (parts,)
    types = [port_type(f"{where}, return", part) for part in parts]
    return tuple(map(PortSpec, _outs(types), types))
