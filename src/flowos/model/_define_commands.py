"""Defines tasks that run command lines."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import cast

from flowos._dataclasses import replace
from flowos.model._bodies import Captured, Command, Gang, In, Out, PortSpec, Word
from flowos.model._errors import WiringError
from flowos.model._graph import Task
from flowos.model._hints import port_type
from flowos.model._launch import MPIS, Needs
from flowos.model._ports import File, PortType, any_, brief_repr, bytes_, int64, str_
from flowos.model._source_code import alternatives
from flowos.model._wiring import needs_of

_Named = str | tuple[str, PortType] | None


def command(  # noqa: PLR0913 - options of a command line, all by keyword
    argv: Sequence[object],
    *,
    name: str | None = None,
    inputs: Mapping[str, object] | None = None,
    stdout: str | tuple[str, PortType] | None = None,
    stderr: str | tuple[str, PortType] | None = None,
    exit_code: str | None = None,
    outcome: str | None = None,
    variables: Mapping[str, str | float | PurePath] | None = None,
    inherit: bool = True,
    limit_seconds: float | None = None,
    once: str = "",
    needs: Needs | Sequence[Needs] | None = None,
    retries: int = 0,
    requeue: bool = True,
    cache: bool | str | None = None,
) -> Task:
    """A task that runs a command line in a fresh folder of its own.

    argv: texts, numbers, paths, `In(name)` for an input's value, `Out(name)` for an output file's
    path; a tuple of these is one word, as in ("--out=", Out("x")).
    inputs: their types; one that only an `In` names is a File, one in no word delays the start.
    stdout, stderr: the output that captures the stream: a name for UTF-8, or (name, bytes_).
    exit_code: the output for the code; without one, only 0 is a success. outcome: the output for
    the whole `Outcome`; with one, no end is a failure. variables: added to ours, or alone if not
    `inherit`. once: a key of everything that the files depend on: created once, then cached.
    Outputs: files in order of appearance, then captures; if none, `stdout`. Others: see `task`.

    >>> hello = fo.command(["printf", "hello %s", fo.In("name")], inputs={"name": str})
    >>> with fo.slice(hello(fo.flow_input("name", str))) as s:
    ...     s.run("world")
    ['hello world']
    """
    words = _words(argv)
    title = name or _title(words)
    captures = _captures(title, stdout=stdout, stderr=stderr, exit_code=exit_code, outcome=outcome)
    body = Command(argv=words, once=once, limit_seconds=limit_seconds, inherit=inherit)
    files = _names(body, Out)
    captures = captures or ({} if files else {"stdout": ("stdout", str_)})
    return Task(
        name=title,
        inputs=_inputs(title, {n: File for n in _names(body, In)} | _types(title, inputs)),
        outputs=tuple(PortSpec(n, t) for n, t in (*((n, File) for n in files), *captures.values())),
        body=replace(body, captures=_named(captures), variables=_variables(title, variables)),
        needs=needs_of(title, needs),
        retries=retries,
        requeue=requeue,
        cache=cache,
    )


def _variables(title: str, given: object) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise WiringError(
            f"command {title!r}: variables={brief_repr(given)}; expected a dictionary of names and "
            "texts"
        )
    for name, value in given.items():
        if not isinstance(name, str) or not name or not {"=", "\0"}.isdisjoint(name):
            raise WiringError(f"command {title!r}: no variable has the name {brief_repr(name)}")
        if not isinstance(value, (str, int, float, PurePath)) or isinstance(value, bool):
            raise WiringError(
                f"command {title!r}: variable {name}={brief_repr(value)}; expected a text, a "
                "number or a path"
            )
    return tuple((name, str(value)) for name, value in given.items())


def _named(captures: Mapping[str, tuple[str, PortType]]) -> tuple[tuple[str, Captured], ...]:
    return tuple((name, cast("Captured", what)) for what, (name, _) in captures.items())


def _types(title: str, given: object) -> dict[str, object]:
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    raise WiringError(
        f"command {title!r}: inputs={brief_repr(given)}; expected a type for each name, as in "
        "inputs={'n': int}"
    )


def _inputs(title: str, types: Mapping[str, object]) -> tuple[PortSpec, ...]:
    where = f"command {title!r}, input"
    return tuple(PortSpec(n, port_type(f"{where} {n!r}", t)) for n, t in types.items())


def gang(task: Task, *, mpi: str, mpirun: str = "") -> Task:
    """The command as an MPI program of `needs.ranks` ranks.

    mpi: the family of the MPI that it was built with, "openmpi" or "mpich". mpirun: that MPI's
    mpirun, if it is not the first on PATH.

    >>> solver = fo.command(["./solver", fo.In("n")], inputs={"n": int}, needs=fo.Needs(ranks=4))
    >>> fo.gang(solver, mpi="openmpi")
    <task solver(n: int64) -> stdout: str_>
    """
    body = getattr(task, "body", None)
    if not isinstance(body, Command):
        raise WiringError(f"gang: expected a task made by fo.command, given {task!r}")
    if mpi not in MPIS:
        raise WiringError(f"gang: mpi={brief_repr(mpi)}; there is {alternatives(MPIS)}")
    if task.needs.otherwise:
        raise WiringError(f"gang: task {task.name!r} needs {task.needs.words}; give one fo.Needs")
    return replace(task, body=Gang(command=body, mpi=mpi, mpirun=mpirun))


def _words(argv: object) -> tuple[Word, ...]:
    if isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence) or not argv:
        raise WiringError(f"command: expected a list of words, given {brief_repr(argv)}")
    return tuple(tuple(map(_part, w)) if isinstance(w, tuple) else _part(w) for w in argv)


def _part(word: object) -> str | In | Out:
    if isinstance(word, (In, Out)):
        return word
    if isinstance(word, (str, int, float, PurePath)) and not isinstance(word, bool):
        return str(word)
    raise WiringError(
        f"command: a word is a text, a number, a path, In, Out or a tuple of these, "
        f"given {brief_repr(word)}"
    )


def _title(words: tuple[Word, ...]) -> str:
    return PurePath(words[0]).name if isinstance(words[0], str) and words[0] else "command"


def _names(body: Command, kind: type[In] | type[Out]) -> list[str]:
    """Names of the ports of a kind, in order of appearance."""
    return list(dict.fromkeys(p.name for p in body.parts if isinstance(p, kind)))


def _captures(title: str, **captures: _Named) -> dict[str, tuple[str, PortType]]:
    """Maps what is captured to the name and type of its output."""
    usual = {"stdout": str_, "stderr": str_, "exit_code": int64, "outcome": any_}
    found = {}
    for what, given in captures.items():
        if given is None:
            continue
        match given:
            case str():
                name, type_ = given, usual[what]
            case (str(name), PortType() as type_):
                pass
            case _:
                raise WiringError(
                    f"command {title!r}: {what}= names an output, such as {what}={what!r}, "
                    f"given {brief_repr(given)}"
                )
        if type_ != usual[what] and not (type_ == bytes_ and usual[what] == str_):
            raise WiringError(
                f"command {title!r}: {what} cannot be captured as {brief_repr(type_)}"
            )
        found[what] = (name, type_)
    return found
