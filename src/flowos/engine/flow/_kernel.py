"""Running a stage in this process: the one loop that every Python task goes through."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from threading import get_ident
from typing import Any

from flowos.engine.flow._control import NotDone, as_result, choose, repeat
from flowos.engine.flow._errors import as_called, trace_of_task
from flowos.engine.flow._failures import in_round, not_done, output_refused, refused, task_failed
from flowos.engine.flow._files import present
from flowos.model import (
    Cancelled,
    Cond,
    File,
    FlowosError,
    Loop,
    PortIncompatible,
    Python,
    any_,
    brief_repr,
)
from flowos.plan import Stage, Step

_Function = Callable[..., Any]
_Pick = Callable[[Sequence[object]], Any]
_Settle = Callable[[Step, object, list[object]], None]
_Operation = tuple[_Function, _Pick, int, Callable[[object], bool], Step, _Settle]


class StopFlag:
    """Says to the task loop of one place that it shall not go on."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


class CompiledStage:
    """A stage made ready for this process. The last register of its frame holds the `StopFlag`."""

    __slots__ = ("constants", "operations", "returns")

    def __init__(self, stage: Stage) -> None:
        self.constants = stage.constants
        steps = stage.steps if stage.steps and stage.in_python else ()
        stop_flag = len(stage.inputs) + len(stage.constants)
        self.operations: Iterable[_Operation] = [_operation(step, stop_flag) for step in steps]
        self.returns = pick(stage.returns)

    def run(self, values: Sequence[object], stop_flag: StopFlag) -> Sequence[object]:
        """The values of `stage.outputs`.

        Raises TaskFailed or ValueRefused if a task or its value is wrong, Cancelled once
        `stop_flag` is on.
        """
        frame = [*values, *self.constants, stop_flag]
        for function, pick, give, good, step, settle in self.operations:
            if stop_flag.on:
                raise Cancelled(f"stopped before task {step.label!r}")
            try:
                value = function(*pick(frame))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if step.inner and isinstance(error, FlowosError):  # of a task in it
                    raise
                raise _failed(step, frame, error) from error
            if good(value):
                frame[give] = value
            else:
                settle(step, value, frame)
        return self.returns(frame)  # type: ignore[no-any-return]


class MarkedOperations:
    """The operations of a stage; marks says which one a thread began last."""

    __slots__ = ("_marks", "_operations")

    def __init__(self, operations: Iterable[_Operation], marks: dict[int, int]) -> None:
        self._operations, self._marks = operations, marks

    def __iter__(self) -> Iterator[_Operation]:
        marks, thread = self._marks, get_ident()
        for i, operation in enumerate(self._operations):
            marks[thread] = i
            yield operation


def _operation(step: Step, stop_flag: int) -> _Operation:
    plain = len(step.outputs) == 1 and step.task.outputs[0].type != File
    good = step.task.outputs[0].type.quick() if plain else _never
    settle = _several(step) if len(step.outputs) > 1 else _settle
    body = step.task.body
    if isinstance(body, Python):
        fun: _Function = as_called(body.fun, (body.keywords, step.task.checked_extents))
        return fun, pick(step.inputs), step.outputs[0], good, step, settle
    fun = partial(_choose if isinstance(body, Cond) else _repeat, step, _compiled(step))
    return fun, pick((*step.inputs, stop_flag)), step.outputs[0], good, step, settle


def _compiled(step: Step) -> list[CompiledStage]:
    return [CompiledStage(stage) for stage in step.inner]


def _choose(step: Step, flows: Sequence[CompiledStage], *values: Any) -> Any:
    """values: those of the step, then the `StopFlag`."""
    assert isinstance(step.task.body, Cond)
    *given, stop_flag = values
    which, inputs = choose(step.task.body.takes, given)
    return as_result(flows[which].run(inputs, stop_flag))


def _repeat(step: Step, flows: Sequence[CompiledStage], *values: Any) -> Any:
    """values: those of the step, then the `StopFlag`."""
    loop, (flow,) = step.task.body, flows
    assert isinstance(loop, Loop)
    *given, stop_flag = values

    def run_round(number: int, inputs: Sequence[object]) -> Sequence[object]:
        if stop_flag.on:
            raise Cancelled(f"stopped before round {number} of {step.label!r}")
        try:
            return flow.run(inputs, stop_flag)
        except FlowosError as error:
            raise in_round(error, number, step.label) from error.__cause__

    try:
        return repeat(loop.state, loop.max_rounds, loop.until, run_round, given)
    except NotDone as late:
        raise not_done(step, map(brief_repr, late.args[0])) from None


def _never(_: object) -> bool:
    return False


def pick(registers: Sequence[int]) -> _Pick:
    """Reads these registers in one call, always as a sequence."""
    if len(registers) > 1:
        return itemgetter(*registers)
    first = registers[0] if registers else 0
    return itemgetter(slice(first, first + len(registers)))


def _several(step: Step) -> _Settle:
    """The short way for a tuple of good values; else the long one."""
    ports = step.task.outputs
    if any(port.type == File for port in ports):
        return _settle
    checks = [(i, port.type.quick()) for i, port in enumerate(ports) if port.type != any_]
    gives, count = step.outputs, len(ports)

    def settle(step: Step, value: object, frame: list[object]) -> None:
        if type(value) is tuple and len(value) == count:
            for i, good in checks:
                if not good(value[i]):
                    break
            else:
                for give, each in zip(gives, value):  # noqa: B905 - as many
                    frame[give] = each
                return
        _settle(step, value, frame)

    return settle


def _settle(step: Step, value: object, frame: list[object]) -> None:
    """Check and keep what a step gave, the long way: several outputs, files, wrong values."""
    outputs = step.task.outputs
    if len(outputs) == 1:
        values: Sequence[object] = (value,)
    elif isinstance(value, (tuple, list)) and len(value) == len(outputs):
        values = value
    else:
        names = ", ".join(p.name for p in outputs)
        many = f"{len(value)} values" if isinstance(value, (tuple, list)) else type(value).__name__
        raise _refused(
            step, frame, f"outputs {names}: expected {len(outputs)} values, given {many}"
        )
    good = []
    for port, each in zip(outputs, values, strict=True):
        complaint = port.type.check(each)
        if complaint is None and port.type == File:
            path = present(each)  # type: ignore[arg-type]
            complaint, each = (path, each) if isinstance(path, str) else (None, path)
        if complaint:
            raise _refused(step, frame, f"output {port.name!r}: {complaint}")
        good.append(each)
    for give, each in zip(step.outputs, good, strict=True):  # the place of an input may be reused
        frame[give] = each


def _refused(step: Step, frame: list[object], complaint: str) -> FlowosError:
    return output_refused(step, [brief_repr(frame[i]) for i in step.inputs], complaint)


def _failed(step: Step, frame: list[object], error: BaseException) -> FlowosError:
    if isinstance(error, PortIncompatible):
        return refused(step.label, str(error))
    error.with_traceback(trace_of_task(error))
    return task_failed(step, [frame[i] for i in step.inputs], error)
