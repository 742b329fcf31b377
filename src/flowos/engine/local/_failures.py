"""How a failed task is told: its name, what it was given, what it raised."""

from collections.abc import Iterable, Sequence

from flowos.model import PortSpec, TaskFailed, ValueRefused, shown


def task_failed(
    label: str, inputs: Sequence[PortSpec], values: Iterable[object], error: BaseException
) -> TaskFailed:
    """To be raised from `error`, which keeps its own traceback."""
    given = ", ".join(f"{p.name} = {shown(v)}" for p, v in zip(inputs, values, strict=True))
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    return TaskFailed(f"task {label!r} raised {what}; given {given or 'nothing'}")


def refused(label: str, complaint: str) -> ValueRefused:
    """A task's result is not what its output promises."""
    return ValueRefused(f"task {label!r}, {complaint}")


def input_refused(name: str, complaint: str) -> ValueRefused:
    return ValueRefused(f"run: input {name!r}: {complaint}")
