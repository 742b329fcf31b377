"""Command tasks: a command line put together from values, started, and its answers read.

Each command runs in a fresh folder of its own, and its `Out` files stay there until the slice is
freed. Files made under a key (`once`) live in the person's cache folder instead, published whole by
one rename, so that two makers at once do no harm.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from flowos._dataclasses import replace
from flowos._user_folders import cache_folder
from flowos.engine._node import Node
from flowos.engine.flow._bound import device_variables, is_bound, with_attempt, with_threads
from flowos.engine.flow._failures import refused, remedy_of, reworded
from flowos.engine.flow._folders import Folders, plain_name
from flowos.engine.flow._inside import Surroundings, bound_for_once, naming
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.flow._runs import ExecutionSlot
from flowos.engine.flow._spread_ranks import gang_nodes, refuse_lost
from flowos.engine.launch._capture import Capture
from flowos.engine.launch._prepared import MAX_OUTPUT_BYTES
from flowos.engine.launch._running import RunningProcess
from flowos.model import (
    Cancelled,
    Command,
    DeviceNumbers,
    Environment,
    EnvironmentRefused,
    Exited,
    File,
    Gang,
    In,
    Killed,
    Launch,
    LaunchFailed,
    Lost,
    Needs,
    NotStarted,
    Out,
    Outcome,
    RuntimeFailed,
    Task,
    TaskFailed,
    TimeLimitExceeded,
    ValueRefused,
    Word,
    brief_repr,
    str_,
)
from flowos.plan import Stage, Step

_LEAVE_SECONDS = 4.0
_QUOTED_LINES = 5
_QUOTED_CHARS = 300
MAX_CAPTURED_BYTES = 1 << 30
"""Of what a command prints as an output; less where memory is short."""
_CAPTURED_SHARE = 8
_STREAMS = ("stdout", "stderr")


class CommandLane:
    """Runs one command at a time through a Launch. slot: of this lane; it knows the attempt."""

    def __init__(self, folders: Folders, around: Surroundings, stop_flag: StopFlag) -> None:
        self._folders = folders
        self._around = around
        self._stop_flag = stop_flag
        self._running: RunningProcess | None = None
        self._cores: tuple[int, ...] = ()
        self._devices: DeviceNumbers = ()
        self._needs = Needs()
        self._attempt = 1
        self.slot: ExecutionSlot | None = None

    def run(
        self, stages: Sequence[Stage], values: Sequence[Sequence[object]]
    ) -> list[tuple[object, ...]]:
        return [self._stage(stage, given) for stage, given in zip(stages, values, strict=True)]

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        self._cores, self._devices = tuple(cores), devices

    def stop(self) -> None:
        running = self._running
        if running is not None:
            running.stop()

    def _stage(self, stage: Stage, values: Sequence[object]) -> tuple[object, ...]:
        """Registers are the values taken, then constants; `Out` files are kept."""
        (step,) = stage.steps
        self._needs = stage.needs
        run = self.slot and self.slot.run
        self._attempt = run.attempt(stage) if run else 1
        frame = (*values, *stage.constants)
        given = {p.name: frame[i] for p, i in zip(step.task.inputs, step.inputs, strict=True)}
        try:
            made = self._run_command(step, given)
        except (TaskFailed, ValueRefused) as error:
            raise reworded(error, f"{error}; {_asked(step.task, given)}") from error.__cause__
        except LaunchFailed as error:
            words = f"{error}{remedy_of(error.__cause__)}; {_asked(step.task, given)}"
            raise TaskFailed(f"task {step.label!r}: {words}") from error
        by_register = dict(zip(step.outputs, made, strict=True))
        return tuple(by_register[i] for i in stage.returns)

    def _run_command(self, step: Step, given: Mapping[str, object]) -> tuple[object, ...]:
        command = _command_of(step.task)
        if command.once:
            return self._once(step, command, given)
        folder = self._folders.working(step.label)
        outcome = self._launched(step, command, given, folder)
        with naming(f"task {step.label!r}"):
            folder = self._folders.keep(folder, step.label)
        results = _results(step, folder, outcome)
        if not any(isinstance(p, Out) for p in command.parts):
            shutil.rmtree(folder, ignore_errors=True)
        return results

    def _once(
        self, step: Step, command: Command, given: Mapping[str, object]
    ) -> tuple[object, ...]:
        made = cache_folder() / "made" / plain_name(self._once_key(command))
        files = tuple(made / p.name for p in step.task.outputs)
        if all(f.exists() for f in files):
            return files
        hidden = _hidden_folder(made)
        try:
            self._make(step, command, given, hidden)
            with suppress(OSError):  # another one published the same first
                hidden.rename(made)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
        return files

    def _once_key(self, command: Command) -> str:
        """What an image's compiler makes is another thing than what ours makes."""
        image = self._around.env.image
        return f"{command.once} in {image.digest}" if image else command.once

    def _make(
        self, step: Step, command: Command, given: Mapping[str, object], hidden: Path
    ) -> None:
        """Into `hidden`, by way of a folder that the environment and the node see."""
        if not self._around.in_image and self._around.node.is_here:
            _results(step, hidden, self._launched(step, command, given, hidden))
            return
        folder = self._folders.working(step.label)
        _results(step, folder, self._launched(step, command, given, folder))
        shutil.copytree(folder, hidden, dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(folder, ignore_errors=True)

    def _launched(
        self, step: Step, command: Command, given: Mapping[str, object], folder: Path
    ) -> Outcome:
        given = self._there(step, given)
        if not self._around.in_image:
            return self._launched_in(self._around.env, step, command, given, folder)
        with tempfile.TemporaryDirectory(
            prefix="inputs-", dir=self._around.node.folder()
        ) as inputs:
            env, seen = self._seen(step, given, Path(inputs))
            return self._launched_in(env, step, command, seen, folder)

    def _there(self, step: Step, given: Mapping[str, object]) -> Mapping[str, object]:
        """Files under their names on the node, or on all nodes of its ranks."""
        if self._around.node.is_here:
            return given
        everywhere, there = (self._needs.nodes or 1) > 1, dict(given)
        for port in step.task.inputs:
            if port.type == File:
                path = Path(str(given[port.name])).absolute()
                with naming(f"task {step.label!r}, input {port.name!r}"):
                    there[port.name] = self._around.node.stage_in(path, everywhere=everywhere)
        return there

    def _seen(
        self, step: Step, given: Mapping[str, object], inputs: Path
    ) -> tuple[Environment, Mapping[str, object]]:
        """Files under their names inside; what is not to be seen there is bound for this once."""
        env, seen = self._around.env, dict(given)
        for port in step.task.inputs:
            if port.type == File:
                path = Path(str(given[port.name])).absolute()
                inside = self._around.inside(path)
                if inside is None:
                    env, inside = bound_for_once(env, path, inputs)
                seen[port.name] = inside
        return env, seen

    def _launched_in(
        self,
        env: Environment,
        step: Step,
        command: Command,
        given: Mapping[str, object],
        folder: Path,
    ) -> Outcome:
        node, needs, body = self._around.node, step.task.needs, step.task.body
        variables = node.variables(env, command.variables, inherit=command.inherit)
        threads = len(self._cores) if needs.otherwise else needs.cores * is_bound(needs)
        if threads and command.inherit:
            variables = with_threads(variables, threads)
        variables = with_attempt(variables, self._attempt)
        launch = Launch(
            argv=tuple(_word(w, given, folder) for w in command.argv),
            env=env,
            variables=variables,
            cwd=folder,
            needs=needs,
            ranks=needs.ranks,
            limit_seconds=command.limit_seconds,
            cpus=() if isinstance(body, Gang) else self._cores,  # its launcher binds the ranks
        )
        launcher, mpirun = (body.mpi, body.mpirun) if isinstance(body, Gang) else ("direct", "")
        captures = _captures(command, node)
        with gang_nodes(step.label, self._needs, node, lambda: self._stop_flag.on) as taken:
            nodes = tuple(taken)
            if len(nodes) > 1:
                launch = replace(launch, nodes=tuple(each.name for each in nodes))
            if needs.generic_resources or self._devices:
                has = {each.name: taken[each] or self._devices for each in nodes}
                own = (*launch.variables, *device_variables(has))
                launch = replace(launch, variables=own)
            try:
                running = node.start(launch, launcher=launcher, mpirun=mpirun, captures=captures)
            except EnvironmentRefused as error:
                raise TaskFailed(f"task {step.label!r}: {error}") from error
            outcome = self._waited(step, running)
        refuse_lost(step.label, nodes, outcome, running.step)
        _refuse_cut(step.label, captures)
        return outcome

    def _waited(self, step: Step, running: RunningProcess) -> Outcome:
        self._running = running
        try:
            if self._stop_flag.on:  # the stop came before there was something to stop
                running.stop()
            outcome = running.wait()
        except BaseException:
            running.stop()
            running.wait(_LEAVE_SECONDS)
            raise
        finally:
            self._running = None
        if self._stop_flag.on:
            raise Cancelled(f"task {step.label!r} was stopped")
        return outcome


def _command_of(task: Task) -> Command:
    body = task.body.command if isinstance(task.body, Gang) else task.body
    assert isinstance(body, Command)
    return body


def _captures(command: Command, node: Node) -> tuple[Capture, Capture]:
    """What is an output is kept whole; of what else is printed, both ends are for messages."""
    captured = {what for _, what in command.captures}
    most = min(MAX_CAPTURED_BYTES, node.ledger.whole.memory_bytes // _CAPTURED_SHARE)
    first, second = (
        Capture(most, whole=True) if {stream, "outcome"} & captured else Capture(MAX_OUTPUT_BYTES)
        for stream in _STREAMS
    )
    return first, second


def _refuse_cut(label: str, captures: Sequence[Capture]) -> None:
    for stream, capture in zip(_STREAMS, captures, strict=True):
        if capture.broken:
            raise TaskFailed(
                f"task {label!r}: the command printed more than {capture.max_bytes} bytes to "
                f"{stream}, which an output captures, and was ended; have it write a file, "
                "as in fo.Out('name')"
            )


def _word(word: Word, given: Mapping[str, object], folder: Path) -> str:
    if isinstance(word, tuple):
        return "".join(_word(part, given, folder) for part in word)
    if isinstance(word, In):
        return os.fspath(v) if isinstance(v := given[word.name], os.PathLike) else str(v)
    return str(folder / word.name) if isinstance(word, Out) else word


def _asked(task: Task, given: Mapping[str, object]) -> str:
    """The command line and the inputs of a command that failed, for its message."""
    words = shlex.join(_word(w, given, Path()) for w in _command_of(task).argv)
    inputs = ", ".join(f"{name} = {brief_repr(value)}" for name, value in given.items())
    return f"command: {' '.join(_cut(words).split())}; given {_cut(inputs) or 'nothing'}"


def _cut(text: str) -> str:
    return f"{text[:_QUOTED_CHARS]} ..." if len(text) > _QUOTED_CHARS else text


def _results(step: Step, folder: Path, outcome: Outcome) -> tuple[object, ...]:
    """The outputs of a command that ended: captured, or files that it wrote."""
    captures = dict(_command_of(step.task).captures)
    _refuse_failure(step.label, outcome, frozenset(captures.values()))
    results: list[object] = []
    for port in step.task.outputs:
        capture = captures.get(port.name)
        if capture is None:
            value: object = folder / port.name
            if not (folder / port.name).exists():
                raise refused(step.label, f"output {port.name!r}: the command wrote no such file")
        else:
            value = _captured(outcome, capture)
            if port.type == str_:
                value = _text(step.label, port.name, capture, value)
        complaint = port.type.check(value)
        if complaint:
            raise refused(step.label, f"output {port.name!r}: {complaint}")
        results.append(value)
    return tuple(results)


def _captured(outcome: Outcome, what: str) -> object:
    if what == "outcome":
        return outcome
    if what == "exit_code":
        assert isinstance(outcome.end, Exited)
        return outcome.end.code
    return outcome.stdout if what == "stdout" else outcome.stderr


def _text(label: str, name: str, what: str, printed: object) -> str:
    assert isinstance(printed, bytes)
    try:
        return printed.decode()
    except UnicodeDecodeError as error:
        raise refused(
            label,
            f"output {name!r}: byte {error.start + 1} of what it printed is no UTF-8: take bytes, "
            f'as with {what}=("{name}", fo.bytes_)',
        ) from None


def _refuse_failure(label: str, outcome: Outcome, captured: frozenset[str]) -> None:
    if "exit_code" in captured:
        if isinstance(outcome.end, Exited):
            return
    elif outcome.ok or "outcome" in captured:
        return
    lines = outcome.stderr.decode(errors="replace").strip().splitlines()[-_QUOTED_LINES:]
    said = f"; it said: {' / '.join(lines)}" if lines else ""
    late = isinstance(outcome.end, Killed) and outcome.end.by == "limit"
    failed = TimeLimitExceeded if late else TaskFailed
    raise failed(f"task {label!r}: the command {_ending(outcome)}{said}")


def _ending(outcome: Outcome) -> str:
    match outcome.end:
        case Exited(code):
            return f"exited with {code}"
        case Killed(signal, "limit"):
            return f"ran over its time limit (signal {signal})"
        case Killed(signal):
            return f"was killed by signal {signal}"
        case NotStarted(reason):
            return f"could not be started: {reason}"
        case RuntimeFailed(reason):
            return f"was not reached, its launcher failed: {reason}"
        case Lost(reason):
            return f"is lost: {reason}"


def _hidden_folder(made: Path) -> Path:
    """A hidden folder in that of `made`. Raises TaskFailed if none can be made."""
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".", dir=made.parent))
    except OSError as error:
        raise TaskFailed(
            f"no folder can be made in the cache {made.parent} ({error.strerror}): "
            "name another cache folder in XDG_CACHE_HOME"
        ) from error
