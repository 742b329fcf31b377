"""Running a stage in this process: the one loop that every Python task goes through."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from threading import get_ident
from typing import Any

from flowos.engine.flow._errors import by_keyword, trace_of_task
from flowos.engine.flow._failures import output_refused, task_failed
from flowos.engine.flow._files import present
from flowos.model import Cancelled, File, FlowosError, Python, brief_repr
from flowos.plan import Stage, Step

_Pick = Callable[[list[object]], Any]
_Operation = tuple[Callable[..., Any], _Pick, int, Callable[[object], bool], Step]


class Halt:
    """Says to the task loop of one place that it shall not go on."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


class CompiledStage:
    """A stage made ready for this process."""

    __slots__ = ("constants", "operations", "returns")

    def __init__(self, stage: Stage) -> None:
        self.constants = stage.constants
        python = isinstance(stage.steps[0].task.body, Python)
        steps = stage.steps if python else ()
        self.operations: Iterable[_Operation] = tuple(map(_operation, steps))
        self.returns = _pick(stage.returns)

    def run(self, values: Sequence[object], halt: Halt) -> Sequence[object]:
        """The values of `stage.outputs`. TaskFailed, ValueRefused; Cancelled once `halt` is on."""
        frame = [*values, *self.constants]
        for function, pick, give, good, step in self.operations:
            if halt.on:
                raise Cancelled(f"stopped before task {step.label!r}")
            try:
                value = function(*pick(frame))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise _failed(step, frame, error) from error
            if good(value):
                frame[give] = value
            else:
                _settle(step, value, frame)
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


def _operation(step: Step) -> _Operation:
    assert isinstance(step.task.body, Python)
    plain = len(step.outputs) == 1 and step.task.outputs[0].type != File
    good = step.task.outputs[0].type.quick() if plain else _never
    fun = by_keyword(step.task.body.fun, step.task.body.keywords)
    return fun, _pick(step.inputs), step.outputs[0], good, step


def _never(_: object) -> bool:
    return False


def _pick(registers: Sequence[int]) -> _Pick:
    """Reads these registers in one call, always as a sequence."""
    if len(registers) > 1:
        return itemgetter(*registers)
    first = registers[0] if registers else 0
    return itemgetter(slice(first, first + len(registers)))


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
    given = [brief_repr(frame[i]) for i in step.inputs]
    return output_refused(step.label, step.task.inputs, given, complaint)


def _failed(step: Step, frame: list[object], error: BaseException) -> FlowosError:
    error.with_traceback(trace_of_task(error))
    return task_failed(step.label, step.task.inputs, [frame[i] for i in step.inputs], error)
