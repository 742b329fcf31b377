"""What a slice's tasks meet in an image: files under the names that they have there."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from flowos.drivers import bind_for_us, path_inside, path_outside
from flowos.engine._node import Node
from flowos.model import BARE, Environment, File, ValueRefused
from flowos.plan import Schedule, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """In what the tasks of a slice run, and where. named: as the person named it, for messages."""

    node: Node
    env: Environment = BARE
    named: str = ""

    @property
    def in_image(self) -> bool:
        return self.env.image is not None

    def inside(self, path: Path) -> PurePath | None:
        """What a file of the host is called inside; None if it is not to be seen there."""
        if not self.in_image:
            return path
        found, real = path_inside(path, self.env.binds), path.resolve()
        if found and (real == path or path_inside(real, self.env.binds)):
            return found
        return path_inside(real, self.env.binds)

    def outside(self, path: Path) -> PurePath | None:
        """The host's name of a path that a task gave."""
        return path_outside(path, self.env.binds) if self.in_image else path


class TaskFiles:
    """The files among the values of Python tasks, under the names that they have inside."""

    def __init__(self, schedule: Schedule, around: Surroundings) -> None:
        self._around = around
        self._inputs: dict[int, list[tuple[int, str]]] = {}
        self._outputs: dict[int, list[tuple[int, str]]] = {}
        if around.in_image:
            for stage in schedule.all_stages:
                self._inputs[stage.number] = list(_taken_files(stage))
                self._outputs[stage.number] = list(_given_files(stage))

    def as_inside(self, stage: Stage, values: Sequence[object]) -> Sequence[object]:
        """What the stage takes. ValueRefused for a file that is not to be seen there."""
        registers = self._inputs.get(stage.number, ())
        return self._seen([w for w in registers if w[0] < len(stage.inputs)], values, 0)

    def constants_inside(self, stage: Stage, constants: Sequence[object]) -> Sequence[object]:
        first = len(stage.inputs)
        registers = self._inputs.get(stage.number, ())
        mine = [w for w in registers if first <= w[0] < first + len(constants)]
        return self._seen(mine, constants, first)

    def as_outside(self, stage: Stage, values: list[Any]) -> list[Any]:
        """What the stage gave. ValueRefused for a file that only the image has."""
        for i, where in self._outputs.get(stage.number, ()):
            if isinstance(values[i], PurePath):
                found = self._around.outside(Path(values[i]))
                if found is None or not Path(found).exists():
                    raise ValueRefused(
                        f"{where}: {values[i]} lies in image {self._around.named} alone, and "
                        "is gone with it; write to a folder that is bound, or below /tmp"
                    )
                values[i] = Path(found)
        return values

    def _seen(
        self, registers: Sequence[tuple[int, str]], values: Sequence[object], first: int
    ) -> Sequence[object]:
        if not registers:
            return values
        seen = list(values)
        for register, where in registers:
            value = seen[register - first]
            if isinstance(value, (str, PurePath)):
                seen[register - first] = self._inside(Path(value), where)
        return seen

    def _inside(self, path: Path, where: str) -> Path:
        found = self._around.inside(path.absolute())
        if found is None:
            raise ValueRefused(
                f"{where}: {path} is not to be seen in image {self._around.named}; bind its "
                f"folder: fo.environment({self._around.named!r}, binds=[{str(path.parent)!r}])"
            )
        return Path(found)


def _taken_files(stage: Stage) -> Iterator[tuple[int, str]]:
    """(register, words for it) of what the stage's steps take from outside."""
    outside = len(stage.inputs) + len(stage.constants)
    for step in stage.steps:
        for port, register in zip(step.task.inputs, step.inputs, strict=True):
            if port.type == File and register < outside:
                yield register, f"task {step.label!r}, input {port.name!r}"


def _given_files(stage: Stage) -> Iterator[tuple[int, str]]:
    """(place among what the stage gives, words for it)."""
    for step in stage.steps:
        for port, register in zip(step.task.outputs, step.outputs, strict=True):
            if port.type == File and register in stage.returns:
                place = stage.returns.index(register)
                yield place, f"task {step.label!r}, output {port.name!r}"


def bound_for_once(env: Environment, file: Path, folder: Path) -> tuple[Environment, Path]:
    """The environment in which a file is to be seen, read-only if that can be, and its path there.

    It keeps its name; `folder`, to be seen inside too, holds what it is bound on.
    """
    place = Path(tempfile.mkdtemp(dir=folder)) / file.name
    if file.is_dir():
        place.mkdir()
    else:
        place.touch()
    bind = bind_for_us(env.runtime, str(file.resolve()), str(place))
    return replace(env, binds=(*env.binds, bind)), place
