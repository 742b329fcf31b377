"""The places where stages run: what the local engine asks of threads and of worker processes.

The promise of a lane, for success, failure and cancel:

- `run` runs the stages of a batch one after the other and answers with their results. Between the
  steps of a stage the values stay in the lane. Each result of each step is checked against its
  output port's type (`step.task.outputs[i].type.check`); a step with one output gives its value, a
  step with several a tuple or list of as many. A `File` result becomes an absolute `Path` of what
  exists (`_files.present`).
- A task that raises: `TaskFailed` (`_failures.task_failed`) with the step's label and a summary of
  its inputs, the task's own exception as `__cause__`. A result that its port refuses:
  `ValueRefused` (`_failures.refused`), naming task and port. A process that is gone: `WorkerLost`,
  naming the step that it was in, within a second. The results of the batch are lost, the lane is
  usable again: it starts anew what it needs.
- `run_rows` runs one stage for many rows of inputs and keeps the same promise for each row. It
  returns early, with fewer results than rows, once BATCH_SECONDS are over; what a failed row's
  predecessors gave stays in `results`. Where they are lost with a process, None stands for each,
  so that the row after the results is always the one that failed.
- `stop` may be called from any thread: what `run` is doing ends as soon as it can be ended, and
  that `run` raises `Cancelled`. A later `run` works again, unless `Lanes.close` was called.
- A KeyboardInterrupt inside `run` leaves at once; `stop` is called next.

Which function a decorated task runs is `task.body.fun`: its module holds the Task under that name,
so pickling by reference fails and cloudpickle takes it by value.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from flowos.model import DeviceNumbers
from flowos.plan import Stage

Values = Sequence[object]

BATCH_SECONDS = 0.001
"""After this long a lane answers with what it has: a long item may not hold up the next ones."""


class RowTimes(NamedTuple):
    """Seconds: of all rows, of the last one, and how long the processor worked for all.

    Only the last row may have taken longer than BATCH_SECONDS.
    """

    all: float = 0.0
    last: float = 0.0
    worked: float = 0.0


class Lane(Protocol):
    """One place that runs one batch at a time; called by one thread at a time."""

    def run(self, stages: Sequence[Stage], values: Sequence[Values]) -> Sequence[Values]:
        """For each stage its outputs' values; `values[i]` are those of `stages[i].inputs`."""
        ...

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        """What is run next has these cores of the node for itself, where () is nothing special,
        and these devices, which variables say to it."""
        ...

    def stop(self) -> None:
        """End what runs now, from any thread; nothing happens where nothing runs."""
        ...


class PythonLane(Lane, Protocol):
    """A lane for Python tasks."""

    def run_rows(
        self, stage: Stage, rows: Sequence[Values], results: list[Values | None]
    ) -> RowTimes:
        """Append the values of `stage.outputs` for each row, in order, until the time is over."""
        ...


class SteppingLane(PythonLane, Protocol):
    """One that says how far it is."""

    def at(self, thread: int) -> tuple[int, int] | None:
        """Which stage of those that `thread` gave it runs now, and which of its steps.

        None where that is not known. May be asked by any thread; a stage of one step may be said to
        be at its first.
        """
        ...


class Lanes(Protocol):
    """The lanes of one slice, made with its schedule and their number; Python tasks run on them.

    max_batch: stages that `run` may be given at once. Batches pay where a hop costs more than a
    task.
    """

    @property
    def max_batch(self) -> int: ...

    @property
    def lanes(self) -> Sequence[SteppingLane]: ...

    @property
    def ready(self) -> int:
        """Lanes whose worker process runs and has nothing to do; 0 where lanes need none."""
        ...

    def close(self) -> None:
        """End all lanes and leave nothing behind. Twice is once."""
        ...
