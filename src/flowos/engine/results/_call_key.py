"""The key of a task's call: what its results depend on, as one digest.

- its code: see `_code_digest`. A name that stands for another object while the slice is open counts
  anew, and for this slice alone then: its workers may have what was there before. Of a command the
  words of its argv, its variables, and the content of its program and of each word that is the
  absolute path of a file, as the node has them;
- the environment: the digest of the image, its variables, the node's architecture and, for a
  Python task, the version of Python; for code that another machine compiles, its processor; for R
  and Julia the content of the program as the node finds it, which another version seldom shares;
- the inputs: values by content, files by name and content.

So a slice whose nodes differ takes a result for a node only where one like it computed it. Of ranks
on several nodes the first one counts.

Not part of it, so that a change goes unseen: what the task reads by other ways (a file by a path
that is no File port, inherited variables, the clock), the folder of a file, libraries of a
command's program, what an installed package imports, and the processor of this machine.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from pathlib import Path
from platform import python_version

from flowos.engine.flow._inside import Surroundings
from flowos.engine.results._code_digest import Reads
from flowos.engine.results._file_digest import digest_if_there, file_digest
from flowos.engine.results._key_parts import KeyParts, code_parts, part_of
from flowos.engine.results._record import CODE_BYTES
from flowos.engine.results._value_digest import Digester, NoDigest
from flowos.model import (
    ChosenEngines,
    Command,
    File,
    Gang,
    Python,
    SliceRefused,
    TaskFailed,
    ValueRefused,
    WorkerLost,
    engine_of,
    with_files,
)
from flowos.plan import Stage, Step

_FORMAT = b"2"
_INSTEAD = (
    "leave it out with cache='v1', a text to be changed by hand, or the task with cache=False"
)

_PROGRAMS = {"r": "Rscript", "julia": "julia"}
_FileDigests = Callable[[], tuple[bytes, ...]]


class CallKey:
    """Digests calls of one stage, which is one task.

    Raises SliceRefused if its code has no stable digest, or reads what has none, or the node cannot
    be asked for what it has; WorkerLost if that is lost.
    """

    def __init__(self, stage: Stage, around: Surroundings) -> None:
        (self.step,) = stage.steps
        self._constants = stage.constants
        self._stage, self._around = stage, around
        self._mark = os.urandom(16)
        try:
            self._base, self._watch = self._digested()
        except (NoDigest, OSError) as error:
            raise SliceRefused(
                f"slice: results of task {self.step.label!r} cannot be kept: {error}; make it an "
                f"input, or {_INSTEAD}"
            ) from None
        except WorkerLost:
            raise
        except TaskFailed as error:
            raise SliceRefused(
                f"slice: results of task {self.step.label!r} cannot be kept: {error}; cache=False "
                "leaves the task out"
            ) from error
        self.code = self._base.digest()[:CODE_BYTES]

    def _digested(self) -> tuple[Digester, "_Watch"]:
        base = Digester(classes={})
        base.put(b"flowos", _FORMAT)
        environment = _environment(self._around, self.step)
        base.items(b"environment", environment.values())
        files = _files(self.step, self._around)
        digests = files()
        self._asked = environment, digests
        code = _add_body(base, self.step, digests)
        base.items(b"returns", _returned(self._stage, self.step))
        return base, _Watch(code.reads, code.stores, files, digests)

    def parts(self) -> KeyParts:
        """What its code is made of; nothing where that is not known: no result depends on it."""
        task, (environment, files) = self.step.task, self._asked
        outputs, used = _returned(self._stage, self.step)
        plain = {
            **environment,
            "its outputs": outputs,
            "which of its outputs are used": used,
            "its version": task.cache if isinstance(task.cache, str) else "",
            **_command_parts(self.step, files),
        }
        shown = {"Python": python_version()}
        try:
            found = {name: part_of(each, shown.get(name, "")) for name, each in plain.items()}
            if isinstance(task.body, Python):
                funs = [body.fun for body in _bodies(task.body) if isinstance(body, Python)]
                found |= code_parts(funs)
        except (NoDigest, OSError, RecursionError):
            return {}
        return found

    def _anew(self) -> None:
        """As another value is there by a name that the code reads, or a file of the command is
        another."""
        mark, watch = self._mark, self._watch.again()
        try:
            base, watch = self._digested()
        except (NoDigest, OSError):
            base, mark = self._base.copy(), os.urandom(16)
        if mark is not self._mark or base.digest()[:CODE_BYTES] != self.code:
            base.put(b"of this slice", mark)
        self._base, self._watch = base, watch

    def __call__(self, values: Sequence[object]) -> bytes:
        """values: of the stage's inputs. Raises ValueRefused for one without a stable digest."""
        if not self._watch.holds():
            self._anew()
        frame = (*values, *self._constants)
        key = self._base.copy()
        for port, register in zip(self.step.task.inputs, self.step.inputs, strict=True):
            if type(frame[register]) is ChosenEngines:
                continue  # the task's bodies are in its code, and give equal results
            try:
                if port.type == File:
                    _add_file(key, Path(str(frame[register])))
                else:
                    key.add(with_files(port.type, frame[register], _by_content))
            except (NoDigest, OSError) as error:
                raise ValueRefused(
                    f"task {self.step.label!r}, input {port.name!r}: {error}; without one its "
                    "results cannot be kept: cache=False leaves the task out"
                ) from None
        return key.digest()


class _Watch:
    """Whether names still stand for the same objects, but for those that the code sets itself, and
    files have the same contents."""

    def __init__(
        self, reads: Reads, stores: set[str], files: _FileDigests, digests: tuple[bytes, ...]
    ) -> None:
        self._files, self._digests = files, digests
        once = {(id(where), name): (where, name) for where, name in reads if name not in stores}
        self._reads = tuple(once.values())
        self._places = [where for where, _ in self._reads]
        self._names = [name for _, name in self._reads]
        self._values = list(map(dict.get, self._places, self._names))

    def again(self) -> "_Watch":
        return _Watch(list(self._reads), set(), self._files, self._digests)

    def holds(self) -> bool:
        names_hold = all(map(is_, map(dict.get, self._places, self._names), self._values))
        try:
            return names_hold and self._files() == self._digests
        except (NoDigest, OSError):  # a file is gone
            return False


def _environment(around: Surroundings, step: Step) -> dict[str, object]:
    """By what each is called; keys have the values, in this order."""
    env, node, body = around.env, around.node, step.task.body
    engines = set(map(engine_of, _bodies(body)))
    python = () if "command" in engines else (sys.implementation.name, *sys.version_info)
    found: dict[str, object] = {
        "the image": env.image.digest if env.image else "bare",
        "a variable of the environment": env.variables,
        "the node's architecture": node.architecture(),
        "Python": python,
    }
    if "cpu" in engines and (target := node.compile_target()):
        found["the node's processor"] = target
    for program in (_PROGRAMS[engine] for engine in sorted(engines & _PROGRAMS.keys())):
        found[f"the program {program}"] = _program_digests(around, program)
    return found


def _bodies(body: object) -> Sequence[object]:
    """Those of a task that has several; else itself."""
    found: Sequence[object] = getattr(getattr(body, "fun", None), "bodies", (body,))
    return found


def _program_digests(around: Surroundings, program: str) -> tuple[bytes, ...]:
    variables = dict(around.node.variables(around.env, (), inherit=True))
    return around.node.command_file_digests([program], variables.get("PATH"))


def _returned(stage: Stage, step: Step) -> list[object]:
    """Which outputs others read, and what is checked of them."""
    ports = [(port.name, str(port.type)) for port in step.task.outputs]
    return [ports, [step.outputs.index(register) for register in stage.returns]]


def _command(step: Step) -> Command | None:
    body = step.task.body
    body = body.command if isinstance(body, Gang) else body
    return body if isinstance(body, Command) else None


def _files(step: Step, around: Surroundings) -> _FileDigests:
    """Of the files of a command, as its node finds them in its PATH."""
    command = _command(step)
    if command is None:
        return tuple
    variables = around.node.variables(around.env, command.variables, inherit=command.inherit)
    words = [word for word in command.argv if isinstance(word, str)]
    return partial(around.node.command_file_digests, words, dict(variables).get("PATH"))


def _add_body(to: Digester, step: Step, files: tuple[bytes, ...]) -> Digester:
    """Gives what the code was added to."""
    body = step.task.body
    if isinstance(body, Gang):
        to.items(b"gang", (body.mpi, body.mpirun, step.task.needs.ranks))
        body = body.command
    version = step.task.cache if isinstance(step.task.cache, str) else ""
    to.put(b"version", version.encode())
    if isinstance(body, Python):
        code = Digester(lenient=bool(version))
        code.add(body.fun)
        to.put(b"code", code.digest())
        return code
    assert isinstance(body, Command)
    to.items(b"command", (body.argv, body.captures, body.variables, body.inherit))
    for digest in files:
        to.put(b"file", digest)
    return to


def _command_parts(step: Step, files: tuple[bytes, ...]) -> dict[str, object]:
    """The same of a command, each by what it is called."""
    body, command = step.task.body, _command(step)
    if command is None:
        return {}
    ranks = (body.mpi, body.mpirun, step.task.needs.ranks) if isinstance(body, Gang) else ()
    return {
        "its command": (command.argv, command.captures),
        "a variable of its command": (command.variables, command.inherit),
        "its MPI": ranks,
        "a file of its command": files,
    }


def _by_content(path: object, _: str) -> object:
    """What stands for a file in a value: the path itself where nothing is yet."""
    file = Path(str(path))
    digest = digest_if_there(file)
    return path if digest is None else (file.name, digest)


def _add_file(to: Digester, path: Path) -> None:
    to.put(b"name", os.fsencode(path.name))
    to.put(b"content", file_digest(path))
