"""A task: a name, typed ports, a body, and what it needs. Calling it with ports wires it."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Union

from flowos.model._errors import WiringError
from flowos.model._launch import Needs, Pairs
from flowos.model._ports import File, FilePath, Floating, Integer, PortType, Text, bytes_, shown

if TYPE_CHECKING:
    from flowos.model._flow import Flow


_order: Iterator[int] = itertools.count()
"""When things were made; a call comes after all that it is wired to."""


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A named, typed place for a value."""

    name: str
    type: PortType

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class In:
    """In a command line: the value of the input port of this name (a File becomes its path)."""

    name: str


@dataclass(frozen=True, slots=True)
class Out:
    """In a command line: the path where the command writes the file of this output port."""

    name: str


Word = str | In | Out | tuple[str | In | Out, ...]
"""One word of a command line; a tuple is joined without a space, as in ("--out=", Out("x"))."""

Captured = Literal["outcome", "exit_code", "stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Python:
    """A Python function; its results are the outputs, in order."""

    fun: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line. Outputs that are no `Out` file are captured: see `captures`.

    captures: output port -> what it holds. Without an "exit_code" or "outcome" port, an exit code
    other than 0 fails the task.
    inherit: take the caller's environment under `variables`.
    once: a key of all that the files made depend on; where they were made under this key before,
    they are taken from the cache and the command is not run.
    """

    argv: tuple[Word, ...]
    captures: tuple[tuple[str, Captured], ...] = ()
    variables: Pairs = ()
    inherit: bool = True
    limit_seconds: float | None = None
    once: str = ""

    @property
    def parts(self) -> tuple[str | In | Out, ...]:
        """All that the words are made of, tuples opened."""
        return tuple(p for w in self.argv for p in (w if isinstance(w, tuple) else (w,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """An MPI program: `command` started as `Needs.ranks` ranks by the launcher of this MPI."""

    command: Command
    mpi: str
    starter: str


Body = Union[Python, Command, Gang, "Flow"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Task:
    """What can be wired into a flow by calling it with ports.

    defaults: input port -> the constant taken where a call gives none.
    """

    name: str
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    body: Body
    needs: Needs = field(default_factory=Needs)
    defaults: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise WiringError(f"a task's name is a text, given {shown(self.name)}")
        if not isinstance(self.needs, Needs):
            raise WiringError(f"task {self.name!r}: needs={shown(self.needs)}; use fo.Needs(...)")
        for kind, ports in (("input", self.inputs), ("output", self.outputs)):
            _check_specs(f"task {self.name!r}", kind, ports)
        if not self.outputs:
            raise WiringError(
                f"task {self.name!r} has no output, so no flow could reach it: give it one"
            )
        body = self.body.command if isinstance(self.body, Gang) else self.body
        if isinstance(body, Command):
            _check_command(self, body)

    def __call__(self, *arguments: object, **named: object) -> "Any":
        """Wire the task: its output port, or a tuple of them. WiringError where it does not fit."""
        given = _bind(self, arguments, named)
        call = Call(self, tuple(map(_argument, itertools.repeat(self), self.inputs, given)))
        ports = tuple(new_port(spec, call, i) for i, spec in enumerate(self.outputs))
        return ports[0] if len(ports) == 1 else ports

    def __repr__(self) -> str:
        return f"<task {self}>"

    def __str__(self) -> str:
        takes = ", ".join(map(str, self.inputs))
        gives = ", ".join(map(str, self.outputs))
        return f"{self.name}({takes}) -> {gives}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """A task wired once."""

    task: Task
    arguments: tuple["Port | Constant", ...]
    number: int = field(default_factory=lambda: next(_order))

    def __reduce__(self) -> tuple[object, ...]:
        """A copy is made later than what it is wired to, and has a number of its own."""
        return Call, (self.task, self.arguments)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Port:
    """One output of a call, or (`call` is None) an input of a flow. `number`: when it was made."""

    spec: PortSpec
    call: Call | None
    index: int
    number: int

    @property
    def name(self) -> str:
        """As a person calls it: an input's name, a task's, or task.output where it has several."""
        if self.call is None:
            return self.spec.name
        task = self.call.task
        return task.name if len(task.outputs) == 1 else f"{task.name}.{self.spec.name}"

    def __repr__(self) -> str:
        return f"<{'input' if self.call is None else 'port'} {self.name}: {self.spec.type}>"

    def __reduce__(self) -> tuple[object, ...]:
        return new_port, (self.spec, self.call, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value written into the flow."""

    value: object


def new_input(name: str, type_: PortType) -> Port:
    return new_port(PortSpec(name, type_), None, 0)


def new_port(spec: PortSpec, call: Call | None, index: int) -> Port:
    return Port(spec, call, index, next(_order))


def is_name(given: object) -> bool:
    return isinstance(given, str) and given != ""


def _check_specs(owner: str, kind: str, ports: Sequence[PortSpec]) -> None:
    seen: set[str] = set()
    for port in ports:
        if not is_name(port.name):
            raise WiringError(f"{owner}: an {kind}'s name is a text, given {shown(port.name)}")
        if not isinstance(port.type, PortType):
            raise WiringError(
                f"{owner}: {kind} {port.name!r} has no port type, given {shown(port.type)}; "
                "use one such as fo.int64"
            )
        if port.name in seen:
            raise WiringError(f"{owner}: two {kind}s are named {port.name!r}")
        seen.add(port.name)


def _check_command(task: Task, command: Command) -> None:
    inputs = {p.name for p in task.inputs}
    made = {p.name for p in command.parts if isinstance(p, Out)}
    captured = {name for name, _ in command.captures}
    for part in command.parts:
        if isinstance(part, In) and part.name not in inputs:
            raise WiringError(f"command {task.name!r}: In({part.name!r}) is no input of it")
    if command.once and captured:
        raise WiringError(f"command {task.name!r}: what is made once is files, nothing captured")
    for port in task.inputs:
        if In(port.name) in command.parts and not _is_word(port.type):
            raise WiringError(
                f"command {task.name!r}: In({port.name!r}) is {port.type}, which is no word; "
                "use a File"
            )
    for port in task.outputs:
        if (port.name in made) == (port.name in captured):
            raise WiringError(
                f"command {task.name!r}: output {port.name!r} has to be either an Out in the "
                "command line or captured"
            )
        if port.name in made and (port.type != File or not _is_file_name(port.name)):
            raise WiringError(
                f"command {task.name!r}: Out({port.name!r}) has to be a File with a plain name"
            )


def _is_word(type_: PortType) -> bool:
    return isinstance(type_, (FilePath, Floating, Integer, Text)) and type_ != bytes_


def _is_file_name(name: str) -> bool:
    return name not in (".", "..") and "/" not in name and "\0" not in name


def _bind(
    task: Task, arguments: Sequence[object], named: Mapping[str, object]
) -> tuple[object, ...]:
    """One value per input, in order."""
    names = [p.name for p in task.inputs]
    if len(arguments) > len(names):
        raise WiringError(
            f"task {task.name!r} takes {_counted(names)}, {len(arguments)} arguments given"
        )
    bound = dict(zip(names, arguments, strict=False))
    for name, value in named.items():
        if name not in names:
            raise WiringError(
                f"task {task.name!r} has no input {name!r}; it takes {_counted(names)}"
            )
        if name in bound:
            raise WiringError(f"task {task.name!r}: input {name!r} is given twice")
        bound[name] = value
    bound = {**dict(task.defaults), **bound}
    missing = [name for name in names if name not in bound]
    if missing:
        raise WiringError(
            f"task {task.name!r} takes {_counted(names)}; nothing given for {', '.join(missing)}"
        )
    return tuple(bound[name] for name in names)


def _counted(names: Sequence[str]) -> str:
    noun = "argument" if len(names) == 1 else "arguments"
    return f"{len(names)} {noun} ({', '.join(names)})" if names else "no arguments"


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
