"""On which engines the tasks of a flow run, and what is copied between them."""

from typing import Literal

from flowos._dataclasses import dataclass

HOST = "host"
"""Where arrays of NumPy are."""


@dataclass(frozen=True, slots=True)
class ChosenEngines:
    """Of each site, in a run whose values are of about this size.

    noted: whether it is noted what they take; else None stands for each note.
    """

    size: str
    engines: tuple[str, ...]
    noted: bool = True

    def __repr__(self) -> str:
        return ", ".join(self.engines)


@dataclass(frozen=True, slots=True)
class SiteNote:
    """What one call of a task with several bodies took.

    asked: the engine that was to run it; missing: why another one did. size: see `ChosenEngines`.
    seconds: with the copies of its inputs, and of outputs that do not stay. home: where the engine
    has its arrays. taken, given: of each input and output, its bytes (0 of what is no array) and
    where they were. cold: it was the first call there in its process, where code is compiled.
    """

    size: str
    asked: str
    engine: str
    seconds: float
    home: str
    taken: tuple[tuple[int, str], ...]
    given: tuple[tuple[int, str], ...]
    missing: str = ""
    cold: bool = False

    @property
    def moved_bytes(self) -> int:
        """Of its inputs and outputs, those that were elsewhere."""
        values = (*self.taken, *self.given)
        return sum(size for size, place in values if place != self.home)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """seconds: None where it is not measured on this engine for values of this size.

    fixed: it has no other engine, and is not measured.
    """

    task: str
    engine: str
    seconds: float | None
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCopy:
    """A value that a task gives or takes on an engine with memory of its own.

    bytes: None where they cannot be known before the run.
    """

    value: str
    bytes: int | None
    source: str
    target: str

    def __str__(self) -> str:
        many = "bytes not known before the run" if self.bytes is None else f"{self.bytes} bytes"
        return f"copy {self.value}: {many}, {self.source} to {self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlan:
    """What the next run does. state: "measuring" while engines are tried, then "chosen".

    unknown: whose copies cannot be known before the run, and why.
    """

    state: Literal["measuring", "chosen"]
    tasks: tuple[PlannedTask, ...]
    copies: tuple[PlannedCopy, ...]
    unknown: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Of all tasks with several engines, where each is measured."""
        took = [task.seconds for task in self.tasks if not task.fixed]
        known = [seconds for seconds in took if seconds is not None]
        return sum(known) if known and len(known) == len(took) else None

    def __str__(self) -> str:
        rows = [("task", "engine", "time"), *map(_row, self.tasks)]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
        copies = [*map(str, self.copies), *(f"copies not known: {why}" for why in self.unknown)]
        return "\n".join((*lines, *(copies or ["no copies"]), f"state: {self.state}"))


def _row(task: PlannedTask) -> tuple[str, str, str]:
    known = "not measured" if task.seconds is None else f"{task.seconds * 1e3:.4g} ms"
    return task.task, task.engine, known
