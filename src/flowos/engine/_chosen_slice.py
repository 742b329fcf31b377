"""A slice whose tasks have several bodies: measurement says on which engine each runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowos.engine._engine_history import EngineHistory, size_of
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._runs import FlowRun, MapBatch
from flowos.engine.flow._slice import Slice
from flowos.engine.flow._watched_slice import WatchedSlice
from flowos.model import EnginePlan, FlowosError

if TYPE_CHECKING:
    from concurrent.futures import Future


class ChosenSlice(Slice):
    """As `Slice`. Each run has one more value, its engines, and gives what they took."""

    def __init__(self, *parts: Any, history: EngineHistory) -> None:
        super().__init__(*parts)
        self._history = history

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of it, also which engines are missing."""
        return (*super().notes, *self._history.missing)

    def plan(self, /, *values: object, **named: object) -> EnginePlan:
        return self._history.plan(size_of(self.flow.bind(values, named)))

    def run_attempt(
        self, first: int, values: tuple[object, ...], named: dict[str, object]
    ) -> list[object]:
        return self._noted(super().run_attempt(first, values, named))

    def submit_attempt(
        self, first: int, values: tuple[object, ...], named: dict[str, object]
    ) -> "Future[list[object]]":
        from flowos.engine._chosen_run import ChosenRun  # loads what others never need

        return ChosenRun(super().submit_attempt(first, values, named), self._noted)

    def _checked(self, values: tuple[object, ...]) -> Sequence[object]:
        given = super()._checked(values)
        return (*given, self._history.begin(given))

    def _finish(
        self, crew: Executor, run: FlowRun | MapBatch
    ) -> tuple[list[list[object]], FlowosError | None]:
        outputs, error = super()._finish(crew, run)
        return [self._noted(each) for each in outputs], error

    def _noted(self, found: list[Any]) -> list[object]:
        count = len(self.flow.outputs)
        notes = found[count:]
        if any(notes):
            self._history.end([note for note in notes if note is not None])
        return found[:count]


class WatchedChosenSlice(WatchedSlice, ChosenSlice):
    """Both."""
