"""How a failed task is described: its name, its inputs, what it raised."""

from collections.abc import Iterable, Sequence
from copy import copy
from errno import EMFILE, ENFILE

from flowos.engine.flow._errors import line, where
from flowos.engine.flow._sites import SiteFunction
from flowos.model import (
    FlowosError,
    Loop,
    NoRetry,
    RoundLimitExceeded,
    Task,
    TaskFailed,
    ValueRefused,
    WorkerLost,
    brief_repr,
)
from flowos.plan import Step


class RemoteTraceback(Exception):  # noqa: N818 - reads as what it is
    """Where in the worker a task raised, as text: the cause of the task's exception."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def task_failed(step: Step, values: Sequence[object], error: BaseException) -> TaskFailed:
    """To be raised from `error`, whose traceback begins in the task."""
    site = site_of(step)
    engine = site.engine_of(values[-1]) if site else step.engine
    place = where(error.__traceback__) + (f" on engine {engine}" if engine else "")
    given = given_to(step, map(brief_repr, values)) or "nothing"
    return TaskFailed(f"task {step.label!r} raised {line(error)}{place}; given {given}")


def given_to(step: Step, shown: Iterable[str]) -> str:
    """What a task was given, but for the engines of its run, which are last. shown: of each."""
    names = [port.name for port in step.task.inputs]
    given = [f"{name} = {text}" for name, text in zip(names, shown, strict=True)]
    return ", ".join(given[:-1] if site_of(step) else given)


def site_of(step: Step) -> SiteFunction | None:
    """The function of a task with several bodies."""
    fun = getattr(step.task.body, "fun", None)
    return fun if isinstance(fun, SiteFunction) else None


def not_run(label: str, error: BaseException) -> TaskFailed:
    """Something failed around a task, not in its function. To be raised from `error`."""
    return TaskFailed(f"task {label!r} could not be run: {line(error)}{remedy_of(error)}")


def remedy_of(error: BaseException | None) -> str:
    """What to do about a shortage, as "; DO THIS"."""
    short = isinstance(error, OSError) and error.errno in (EMFILE, ENFILE)
    return "; raise the limit of open files (ulimit -n), or keep fewer results" if short else ""


def output_refused(step: Step, shown: Iterable[str], complaint: str) -> ValueRefused:
    """A task's result is not what its output promises. shown: its values; they may be the cause."""
    given = given_to(step, shown)
    return refused(step.label, f"{complaint}; its inputs were {given}" if given else complaint)


def refused(label: str, complaint: str) -> ValueRefused:
    """What a task was given or gave is not what its port promises."""
    return ValueRefused(f"task {label!r}, {complaint}")


def input_refused(name: str, complaint: str) -> ValueRefused:
    return ValueRefused(f"run: input {name!r}: {complaint}")


def not_done(loop: Step, values: Iterable[str]) -> RoundLimitExceeded:
    """values: what the last round gave, as shown."""
    assert isinstance(loop.task.body, Loop)
    ports = zip(loop.task.outputs, values, strict=True)
    given = ", ".join(f"{port.name} = {value}" for port, value in ports)
    return RoundLimitExceeded(
        f"task {loop.label!r} is not done after {loop.task.body.max_rounds} rounds; "
        f"the last one gave {given}"
    )


def in_round(error: FlowosError, number: int, loop: str) -> FlowosError:
    """The same error, which says in which round of the loop a task failed."""
    if not isinstance(error, (TaskFailed, ValueRefused)):
        return error
    return reworded(error, f"{error}; round {number} of {loop!r}")


def may_repeat(error: BaseException, task: Task) -> bool:
    """Whether another attempt may help: not where the task says no, or its port refuses."""
    if isinstance(error, WorkerLost) and not task.requeue:
        return False
    return isinstance(error, TaskFailed) and not isinstance(error.__cause__, NoRetry)


def after_attempts(error: BaseException, count: int) -> BaseException:
    """The error of the last of several attempts, which says so."""
    if count == 1 or not isinstance(error, TaskFailed):
        return error
    return reworded(error, f"{error}; attempt {count}")


def of_item(error: BaseException, item: int) -> BaseException:
    """The same error, which names the item of a `map`. A copy: several runs may share one."""
    if not isinstance(error, FlowosError):
        return error
    return reworded(error, f"item {item}: {error}")


def reworded(error: FlowosError, words: str) -> FlowosError:
    """A copy that says something else."""
    named = copy(error)
    named.args = (words,)
    named.__cause__ = error.__cause__
    return named
