"""What a slice's tasks meet in an image: files under the names that they have there."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from flowos._dataclasses import dataclass, replace
from flowos.drivers import bind_for_us, path_inside, path_outside
from flowos.engine._node import Node
from flowos.engine.flow._failures import reworded
from flowos.engine.flow._files import present
from flowos.model import (
    BARE,
    Environment,
    PortType,
    TaskFailed,
    ValueRefused,
    WorkerLost,
    has_files,
    with_files,
)
from flowos.plan import Schedule, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """In what the tasks of a slice run, and where. named: as the person named it, for messages.

    folder: in which processes start, by default the current one of this program.
    """

    node: Node
    env: Environment = BARE
    named: str = ""
    folder: Path | None = None

    @property
    def in_image(self) -> bool:
        return self.env.image is not None

    @property
    def cwd(self) -> PurePath:
        """Where what is started here begins: in a person's folder, if it is to be seen."""
        return self.inside(self.folder or _current_folder()) or PurePath("/tmp")

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


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # removed under us
        return Path("/")


_Holder = tuple[int, PortType, str]
"""A place among values, the type of what is there, and words for it."""


class TaskFiles:
    """The files in the values of Python tasks, under the names that they have inside."""

    def __init__(self, schedule: Schedule, around: Surroundings) -> None:
        self._around = around
        self._inputs: dict[int, list[_Holder]] = {}
        self._outputs: dict[int, list[_Holder]] = {}
        if around.in_image or not around.node.is_here:
            for stage in schedule.all_stages:
                self._inputs[stage.number] = list(_taken_files(stage))
                self._outputs[stage.number] = list(_given_files(stage))

    def as_inside(self, stage: Stage, values: Sequence[object]) -> Sequence[object]:
        """What the stage takes. Raises ValueRefused for a file that is not to be seen there."""
        holders = self._inputs.get(stage.number)
        if not holders:
            return values
        mine = [each for each in holders if each[0] < len(stage.inputs)]
        return _renamed(mine, values, self._inside) if mine else values

    def constants_inside(self, stage: Stage, constants: Sequence[object]) -> Sequence[object]:
        first = len(stage.inputs)
        holders = self._inputs.get(stage.number, ())
        own = range(first, first + len(constants))
        mine = [(i - first, type_, where) for i, type_, where in holders if i in own]
        return _renamed(mine, constants, self._inside)

    def may_move(self, stage: Stage) -> bool:
        """Whether a file that is written into the flow may be elsewhere the next time."""
        taken = self._inputs.get(stage.number, ())
        return not self._around.node.is_here and any(w[0] >= len(stage.inputs) for w in taken)

    def gives(self, stage: Stage) -> frozenset[int]:
        """The slots of what it gives that may have files."""
        return frozenset(stage.outputs[i] for i, *_ in self._outputs.get(stage.number, ()))

    def as_outside(self, stage: Stage, values: list[Any]) -> list[Any]:
        """What the stage gave. Raises ValueRefused for a file that only the image has."""
        holders = self._outputs.get(stage.number, ())
        return _renamed(holders, values, self._outside) if holders else values

    def _outside(self, path: Path, where: str) -> Path:
        around = self._around
        outside = around.outside(path)
        with naming(where):
            found = None if outside is None else around.node.stage_out(Path(outside))
        if found is None:
            raise ValueRefused(
                f"{where}: {path} lies in image {around.named} alone, and is gone with it; write "
                "to a folder that is bound, or below /tmp"
                if around.in_image
                else f"{where}: {path} is gone from node {around.node.name}"
            )
        return found

    def _inside(self, path: Path, where: str) -> Path:
        file = path.absolute() if self._around.node.is_here else present(path)
        if isinstance(file, str):  # one of the same name there would be another
            raise ValueRefused(f"{where}: {file}")
        with naming(where):
            there = self._around.node.stage_in(file)
        found = self._around.inside(there)
        if found is None:
            raise ValueRefused(
                f"{where}: {path} is not to be seen in image {self._around.named}; bind its "
                f"folder: fo.environment({self._around.named!r}, binds=[{str(path.parent)!r}])"
            )
        return Path(found)


def _renamed(
    holders: Sequence[_Holder], values: Sequence[Any], name: Callable[[Path, str], Path]
) -> list[Any]:
    """The values, whose files have the names that this gives for their paths and words for them."""
    renamed = list(values)
    for i, type_, where in holders:
        renamed[i] = with_files(type_, values[i], partial(_named, name, where))
    return renamed


def _named(name: Callable[[Path, str], Path], where: str, file: Any, part: str) -> object:
    """A text stays one."""
    found = name(Path(file), where + part)
    if found == Path(file):
        return file
    return str(found) if isinstance(file, str) else found


def _taken_files(stage: Stage) -> Iterator[_Holder]:
    """Registers of what the stage's steps take from outside."""
    outside = set(range(len(stage.inputs) + len(stage.constants)))
    for step in stage.steps:
        for port, register in zip(step.task.inputs, step.inputs, strict=True):
            if has_files(port.type) and register in outside:
                yield register, port.type, f"task {step.label!r}, input {port.name!r}"
        outside.difference_update(step.outputs)  # the place of an input may be reused


def _given_files(stage: Stage) -> Iterator[_Holder]:
    """Places among what the stage gives."""
    last = {register: step for step in stage.steps for register in step.outputs}
    for register, step in last.items():
        port = step.task.outputs[step.outputs.index(register)]
        if has_files(port.type) and register in stage.returns:
            place = stage.returns.index(register)
            yield place, port.type, f"task {step.label!r}, output {port.name!r}"


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Say of which task and port a file is that cannot be copied."""
    try:
        yield
    except WorkerLost:
        raise
    except TaskFailed as error:
        raise reworded(error, f"{where}: {error}") from error.__cause__


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
