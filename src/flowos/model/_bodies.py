"""Bodies of a task: a function, a command line, or the ranks of an MPI program."""

from collections.abc import Callable
from typing import Any, Literal

from flowos._dataclasses import dataclass
from flowos.model._launch import Pairs
from flowos.model._ports import PortType


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A named, typed input or output."""

    name: str
    type: PortType

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class In:
    """In a command line: the value of the input port of this name (a File becomes its path).

    >>> fo.command(["wc", "-c", fo.In("text")])
    <task wc(text: File) -> stdout: str_>
    """

    name: str


@dataclass(frozen=True, slots=True)
class Out:
    """In a command line: the path to which the command writes the file of this output port.

    >>> fo.command(["cp", fo.In("text"), fo.Out("copy")])
    <task cp(text: File) -> copy: File>
    """

    name: str


Word = str | In | Out | tuple[str | In | Out, ...]
"""One word of a command line; a tuple is joined without a space, as in ("--out=", Out("x"))."""

Captured = Literal["outcome", "exit_code", "stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Python:
    """A Python function; its results are the outputs, in order.

    limit_seconds: after this long its worker process is ended; threads cannot be. keywords: names
    of the last inputs, which the function takes by keyword only.
    """

    fun: Callable[..., Any]
    limit_seconds: float | None = None
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeCode(Python):
    """A function in another language, on an engine such as "cpu" or "opencl".

    `fun` takes the values of the inputs, and raises PortIncompatible if their extents disagree. If
    its engine has memory of its own, fun.leaving(numbers) is the same function, whose outputs with
    these numbers are each an EngineArray, which it takes too, and fun.home says where those are.
    """

    engine: str = "cpu"


@dataclass(frozen=True, slots=True)
class Either(Python):
    """One of several functions with equal ports, each on an engine of its own.

    `fun` is the first one's: where nothing chooses, that runs. bodies: of all, in order.
    """

    bodies: tuple[Python, ...] = ()

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(engine_of(body) for body in self.bodies)


def engine_of(body: object) -> str:
    """What computes it: "python", "cpu", "opencl" and so on; "command", or "flow"."""
    if isinstance(body, NativeCode):
        return body.engine
    if isinstance(body, (Command, Gang)):
        return "command"
    return "python" if isinstance(body, Python) else "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line. Outputs that are not `Out` files are captured: see `captures`.

    captures: (output port, what it holds) pairs. Without an "exit_code" or "outcome" port, a
    nonzero exit code fails the task. inherit: use the caller's environment, overridden by
    `variables`. once: a key of everything that the output files depend on. If the cache has files
    of this key, they are taken from there and the command is not run.
    """

    argv: tuple[Word, ...]
    captures: tuple[tuple[str, Captured], ...] = ()
    variables: Pairs = ()
    inherit: bool = True
    limit_seconds: float | None = None
    once: str = ""

    @property
    def parts(self) -> tuple[str | In | Out, ...]:
        """All parts of the words, with tuples flattened."""
        return tuple(p for w in self.argv for p in (w if isinstance(w, tuple) else (w,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """An MPI program: `command` started as `Needs.ranks` ranks by the launcher of this MPI."""

    command: Command
    mpi: str
    mpirun: str
