"""Checks of wiring: names, ports, command lines, and the arguments of a call."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flowos.model._bodies import Command, Gang, In, Out, PortSpec, Python
from flowos.model._errors import FlowosError, WiringError
from flowos.model._extents import Extents, PortIncompatible, known_extents
from flowos.model._launch import Needs, with_choices
from flowos.model._ports import (
    File,
    FilePath,
    Floating,
    Integer,
    PortType,
    Text,
    brief_repr,
    bytes_,
)


def is_name(given: object) -> bool:
    return isinstance(given, str) and given != ""


def not_a_port(given: object, inputs: Sequence[PortSpec] | None) -> str:
    """What is said of an output of a flow that is none. inputs: of a task that was not called."""
    says = f"flow_output: expected ports, given {brief_repr(given)}"
    if inputs is None:
        return says
    ports = ", ".join(f"fo.flow_input({each.name!r}, ...)" for each in inputs)
    return f"{says}; call it with ports, such as ({ports})"


def check_ports(task: str, inputs: Sequence[PortSpec], outputs: Sequence[PortSpec]) -> None:
    """Raises WiringError for a port without name or type, duplicate names, or a missing output."""
    _check_specs(f"task {task!r}", "input", inputs)
    _check_specs(f"task {task!r}", "output", outputs)
    if not outputs:
        raise WiringError(f"task {task!r} has no output, so no flow could reach it: give it one")


def _check_specs(owner: str, kind: str, ports: Sequence[PortSpec]) -> None:
    seen: set[str] = set()
    for port in ports:
        if not is_name(port.name):
            raise WiringError(f"{owner}: an {kind}'s name is a text, given {brief_repr(port.name)}")
        if not isinstance(port.type, PortType):
            raise WiringError(
                f"{owner}: {kind} {port.name!r} has no port type, given {brief_repr(port.type)}; "
                "use one such as fo.int64"
            )
        if port.name in seen:
            raise WiringError(f"{owner}: two {kind}s are named {port.name!r}")
        seen.add(port.name)


def check_body(
    task: str,
    body: Python | Command | Gang,
    inputs: Sequence[PortSpec],
    outputs: Sequence[PortSpec],
) -> None:
    """Raises WiringError for a time limit that is none, or a command that does not fit."""
    inner = body.command if isinstance(body, Gang) else body
    _check_limit(task, inner.limit_seconds)
    if isinstance(inner, Command):
        _check_command(task, inner, inputs, outputs)


def _check_command(
    task: str, command: Command, inputs: Sequence[PortSpec], outputs: Sequence[PortSpec]
) -> None:
    names = {p.name for p in inputs}
    made = {p.name for p in command.parts if isinstance(p, Out)}
    captured = {name for name, _ in command.captures}
    for part in command.parts:
        if isinstance(part, In) and part.name not in names:
            raise WiringError(f"command {task!r}: In({part.name!r}) is no input of it")
    if command.once and captured:
        raise WiringError(f"command {task!r}: what is made once is files, nothing captured")
    for port in inputs:
        if In(port.name) in command.parts and not _is_word(port.type):
            raise WiringError(
                f"command {task!r}: In({port.name!r}) is {port.type}, which is no word; use a File"
            )
    for port in outputs:
        if (port.name in made) == (port.name in captured):
            raise WiringError(
                f"command {task!r}: output {port.name!r} has to be either an Out in the "
                "command line or captured"
            )
        if port.name in made and (port.type != File or not _is_file_name(port.name)):
            raise WiringError(
                f"command {task!r}: Out({port.name!r}) has to be a File with a plain name"
            )


def unused_name(name: str, taken: set[str]) -> str:
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}#{count}"
    return unique


def flat(ports: Iterable[Any]) -> Iterator[Any]:
    for port in ports:
        if isinstance(port, (tuple, list)):
            yield from flat(port)
        else:
            yield port


def refuse_equal_names(inputs: Iterable[str]) -> None:
    """Raises WiringError if two inputs of a flow have one name."""
    seen: set[str] = set()
    for name in inputs:
        if name in seen:
            raise WiringError(f"two inputs of the flow are named {name!r}: rename one")
        seen.add(name)


def known_sizes(task: str, extents: Extents, arguments: Sequence[object]) -> dict[str, int]:
    """As `known_extents`. Raises WiringError if two arguments disagree."""
    try:
        return known_extents(extents, arguments)
    except PortIncompatible as incompatibility:
        raise WiringError(f"task {task!r}, {incompatibility}") from None


def check_options(task: str, retries: object, requeue: object, cache: object) -> None:
    """Raises WiringError for what is no number of retries, or says neither yes nor no."""
    if type(retries) is not int or retries < 0:
        raise WiringError(
            f"task {task!r}: retries={brief_repr(retries)}; expected a whole number, 0 or more"
        )
    if not isinstance(requeue, bool):
        raise WiringError(f"task {task!r}: requeue={brief_repr(requeue)}; expected True or False")
    version = type(cache) is str and cache != ""
    if cache is not None and not isinstance(cache, bool) and not version:
        raise WiringError(
            f"task {task!r}: cache={brief_repr(cache)}; expected True, False, or a version such as "
            "'v2'"
        )


def needs_of(task: str, given: Needs | Sequence[Needs] | None) -> Needs:
    """As a task is given them: the first is preferred. Raises WiringError if they are not Needs."""
    if not isinstance(given, tuple | list):
        return given or Needs()  # type: ignore[return-value]  # a task looks what it is
    if not given or not all(isinstance(each, Needs) and not each.otherwise for each in given):
        words = f"task {task!r}: needs={brief_repr(given)}"
        raise WiringError(f"{words}; use fo.Needs(...), or a tuple of several")
    return with_choices(given[0], given[1:]) if len(given) > 1 else given[0]


def _check_limit(task: str, given: object) -> None:
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is not None and not (number and 0 < given < math.inf):  # type: ignore[operator]
        raise WiringError(
            f"task {task!r}: limit_seconds={brief_repr(given)}; expected a number above 0"
        )


def _is_word(type_: PortType) -> bool:
    return isinstance(type_, (FilePath, Floating, Integer, Text)) and type_ != bytes_


def _is_file_name(name: str) -> bool:
    return name not in (".", "..") and "/" not in name and "\0" not in name


def bind_call(
    task: str,
    inputs: Sequence[PortSpec],
    values: Sequence[object],
    named: Mapping[str, object],
    defaults: Sequence[tuple[str, object]],
    body: object,
) -> tuple[object, ...]:
    """What a task is called with. Raises WiringError if they do not fit."""
    names = [port.name for port in inputs]
    keywords = body.keywords if isinstance(body, Python) else ()
    if len(names) >= len(values) > len(names) - len(keywords):
        raise WiringError(
            f"task {task!r}: input {keywords[0]!r} is given by name only: {keywords[0]}=..."
        )
    return bind_arguments(
        f"task {task!r}", names, values, named, error=WiringError, defaults=dict(defaults)
    )


def bind_arguments(
    owner: str,
    names: Sequence[str],
    values: Sequence[object],
    named: Mapping[str, object],
    *,
    error: type[FlowosError],
    defaults: Mapping[str, object] | None = None,
    hint: str = "",
) -> tuple[object, ...]:
    """One value per name, in order, as Python binds arguments; raises `error` if that fails.

    hint: appended to the message about an unknown name.
    """
    if len(values) > len(names):
        raise error(f"{owner} takes {_counted(names)}, {len(values)} given")
    bound = dict(zip(names, values, strict=False))
    for name, value in named.items():
        if name not in names:
            raise error(f"{owner} has no input {name!r}; it takes {_counted(names)}{hint}")
        if name in bound:
            raise error(f"{owner}: input {name!r} is given twice")
        bound[name] = value
    bound = {**(defaults or {}), **bound}
    missing = [name for name in names if name not in bound]
    if missing:
        raise error(f"{owner} takes {_counted(names)}; nothing given for {', '.join(missing)}")
    return tuple(bound[name] for name in names)


def _counted(names: Sequence[str]) -> str:
    noun = "argument" if len(names) == 1 else "arguments"
    return f"{len(names)} {noun} ({', '.join(names)})" if names else "no arguments"


def refuse_inner(calls: Sequence[Any], inputs: Iterable[Any], inside: Collection[object]) -> None:
    """Raises WiringError if one of them is `inside` a flow that is used as a task."""
    for call in reversed(calls):  # start with the last call: it is the one taken from inside
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
