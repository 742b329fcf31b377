"""Errors for what a worker reports of a failed stage, worded as for a failure in a thread."""

from collections.abc import Callable, Sequence
from typing import Any

from flowos.engine.flow._failures import (
    RemoteTraceback,
    given_to,
    not_done,
    output_refused,
    refused,
)
from flowos.engine.workers._blobs import Packed
from flowos.model import (
    FlowosError,
    PortSpec,
    Python,
    TaskFailed,
    TimeLimitExceeded,
    WorkerLost,
    brief_repr,
)
from flowos.plan import Stage, Step


class RemoteError(Exception):
    """Stands for an exception that cannot be sent; its text is that one's last line."""


def task_error(step: Step, kind: str, *details: Any) -> FlowosError:
    """The error to raise, its cause set."""
    return _KINDS[kind](step, *details)


def lacking(error: FlowosError, place: str) -> FlowosError:
    """The same error; a module that is missing in an image or on a node is said to be so there.

    place: with a word for what it is; "" for this machine.
    """
    if not place or "No module named" not in str(error):
        return error
    named = type(error)(f"{error}; {place} does not have it")
    named.__cause__ = error.__cause__
    return named


def over_limit(step: Step, values: Sequence[Any]) -> FlowosError:
    """A task whose worker was ended because it took too long. values: as they were sent."""
    assert isinstance(step.task.body, Python)
    known = {i: v.open() if type(v) is Packed else v for i, v in enumerate(values)}
    shown = [brief_repr(known.get(i)) for i in step.inputs]  # a constant None is not sent
    return TimeLimitExceeded(
        f"task {step.label!r} ran over its limit of {step.task.body.limit_seconds:g} s, and its "
        f"worker process was ended; given {given_to(step, shown) or 'nothing'}"
    )


def lost(step: Step, where: str, when: str, how: str) -> FlowosError:
    """A task whose worker is gone. where, when: words with a space before them, or ""."""
    return WorkerLost(f"task {step.label!r}: its worker process{where} is gone{when}: {how}")


def input_unsendable(stage: Stage, register: int, why: str) -> FlowosError:
    """A value that cannot be pickled, named by the first task that takes it."""
    step = next(s for s in stage.steps if register in s.inputs)
    port = step.task.inputs[step.inputs.index(register)]
    return refused(step.label, f"input {port.name!r}: cannot cross to a worker process: {why}")


def output_unreadable(stage: Stage, slot: int, why: str) -> FlowosError:
    """A value that came from a worker and cannot be unpickled here."""
    step, port = _maker(stage, stage.returns[stage.outputs.index(slot)])
    return refused(step.label, f"output {port.name!r}: cannot be read here: {why}")


def _maker(stage: Stage, register: int) -> tuple[Step, PortSpec]:
    step = next(s for s in reversed(stage.steps) if register in s.outputs)
    return step, step.task.outputs[step.outputs.index(register)]


def _raised(
    step: Step, shown: list[str], error: Any, last: str, where: str, trace: str
) -> FlowosError:
    given = given_to(step, shown) or "nothing"
    failed = TaskFailed(f"task {step.label!r} raised {last}{where}; given {given}")
    failed.__cause__ = cause = _opened(error, last)
    BaseException.__setattr__(cause, "__cause__", RemoteTraceback(trace))  # it may be frozen
    return failed


def _opened(error: Any, last: str) -> BaseException:
    if error is not None:
        try:
            opened = Packed(error[0], error[1], None).open()
            if isinstance(opened, BaseException):
                return opened
        except Exception:  # its class is known to the worker only
            pass
    return RemoteError(last)


def _refused(step: Step, shown: list[str], port: int | None, complaint: str) -> FlowosError:
    outputs = step.task.outputs
    if port is None:
        names = ", ".join(p.name for p in outputs)
        what = f"outputs {names}: expected {len(outputs)} values, given {complaint}"
    else:
        what = f"output {outputs[port].name!r}: {complaint}"
    return output_refused(step, shown, what)


def _incompatible(step: Step, complaint: str) -> FlowosError:
    return refused(step.label, complaint)


def _unsendable(step: Step, port: int, why: str) -> FlowosError:
    name = step.task.outputs[port].name
    return refused(step.label, f"output {name!r}: cannot leave its worker process: {why}")


def _unreadable(step: Step, why: str) -> FlowosError:
    return refused(step.label, f"its inputs cannot be read in the worker process: {why}")


_KINDS: dict[str, Callable[..., FlowosError]] = {
    "raised": _raised,
    "refused": _refused,
    "incompatible": _incompatible,
    "unsendable": _unsendable,
    "unreadable": _unreadable,
    "not done": not_done,
}
