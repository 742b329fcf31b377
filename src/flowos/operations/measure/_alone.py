"""A measurement has its nodes for itself: no task of this program's slices runs there meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

from flowos import engine
from flowos._dataclasses import dataclass, field
from flowos.engine import Node
from flowos.model import OnProgress, Progress, SliceRefused, UsageError


def refuse_in_a_task() -> None:
    """Raises UsageError where a task calls: it holds cores, so it would wait for itself; also in
    `on_progress` of a measurement."""
    if engine.in_on_progress():
        raise UsageError("measure: called by on_progress of a measurement: call it after that")
    if engine.in_a_task():
        raise UsageError(
            "measure: called by a task of a slice, which runs meanwhile: call it outside of tasks"
        )


@dataclass(slots=True)
class Patience:
    """For how long a measurement waits for tasks, in all its waits together."""

    seconds: float
    left_seconds: float = field(init=False)

    def __post_init__(self) -> None:
        self.left_seconds = self.seconds


def await_tasks(node: Node, patience: Patience, on_progress: OnProgress) -> None:
    """Wait as `node_alone` does, before programs are compiled by a slice of our own.

    That would wait without an end for a task whose thread waits for this measurement.
    """
    with node_alone(node, patience, on_progress):
        return


@contextmanager
def node_alone(node: Node, patience: Patience, on_progress: OnProgress) -> Iterator[None]:
    """It and its neighbours are held alone until the end of the `with`.

    With one that this machine stands in for, this machine is.

    It waits for tasks that run there. Raises SliceRefused if they run for longer than is left of
    the patience.
    """
    until = engine.now() + patience.left_seconds
    said: set[str] = set()

    def check(busy: Node) -> None:
        if engine.now() >= until:
            raise SliceRefused(
                f"measure: {_running_on(busy)} did not end within {patience.seconds:g} s: "
                "measure after that"
            )
        if busy.name not in said:
            said.add(busy.name)
            on_progress(Progress(doing=f"waits for {_running_on(busy)} to end"))

    machine = (engine.here(),) if node.is_here else ()
    with engine.alone_on((*dict.fromkeys((node, *machine)), *node.neighbours()), check):
        patience.left_seconds = max(0.0, until - engine.now())
        yield


def _running_on(node: Node) -> str:
    """Words for what this program runs there: tasks, or another measurement."""
    tasks = [t.task for t in engine.waiting_tasks() if t.node == node.name and t.state == "runs"]
    if not tasks:
        return f"what else this program measures or runs on {node.name}"
    return f"tasks of this program on {node.name} ({', '.join(dict.fromkeys(tasks))})"
