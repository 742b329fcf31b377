"""Functions of tasks with several bodies: a run says the engine, a note what it took."""

import time
from collections.abc import Sequence
from typing import Any

from flowos.engine.flow._errors import as_called
from flowos.model import (
    HOST,
    ChosenEngines,
    EngineArray,
    EngineMissing,
    NativeCode,
    PortIncompatible,
    Python,
    SiteNote,
    Task,
    engine_of,
)

__flowos_frames__ = True


class SiteFunction:
    """Takes a task's values, then `ChosenEngines`; gives its outputs, then a `SiteNote` or None.

    Where an engine is not there, the next one of the task's is taken. stays: numbers of the outputs
    that only others like it take: they stay in the memory of their engine.
    """

    __slots__ = ("_bodies", "_is_one", "_missing", "bodies", "site", "stays", "task")

    def __init__(
        self,
        site: int,
        task: Task,
        bodies: Sequence[Python],
        stays: frozenset[int] = frozenset(),
    ) -> None:
        self.site, self.task, self.bodies, self.stays = site, task, bodies, stays
        self._bodies = {engine_of(body): _Body(task, body, stays) for body in bodies}
        self._missing: dict[str, EngineMissing] = {}
        self._is_one = len(task.outputs) == 1

    def __reduce__(self) -> tuple[object, ...]:
        return SiteFunction, (self.site, self.task, self.bodies, self.stays)

    def leaving(self, outputs: frozenset[int]) -> "SiteFunction":
        """The same, whose outputs with these numbers stay where they were made."""
        return SiteFunction(self.site, self.task, self.bodies, outputs)

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        chosen, given = values[-1], values[:-1]
        asked = engine = chosen.engines[self.site]
        if not chosen.noted and not self._missing:
            try:
                body = self._bodies[asked]
                taken = map(body.here, given) if EngineArray in map(type, given) else given
                result = body.call(*taken)
                if self._is_one and (body.is_native or not self.stays):
                    return result, None
                return (*self._outputs(result), None)
            except EngineMissing:
                pass  # below
        if self._missing:
            engine = self._there(asked)
        while True:
            began = time.perf_counter()
            try:
                body = self._bodies[engine]
                result = body.call(*map(body.here, given))
                break
            except EngineMissing as error:
                self._missing[engine] = error
                engine = self._there(asked)
        seconds = time.perf_counter() - began
        outputs = self._outputs(result)
        missing = str(self._missing[asked]) if engine != asked else ""
        sizes = tuple(map(_size, given)), tuple(map(_size, outputs))
        cold, body.cold = body.cold, False
        note = SiteNote(chosen.size, asked, engine, seconds, body.home, *sizes, missing, cold)
        return (*outputs, note)

    def note_of_kept(self, chosen: ChosenEngines) -> SiteNote | None:
        """Of a call whose result was found: that nothing is known of its engine."""
        engine = chosen.engines[self.site]
        cold = SiteNote(chosen.size, engine, engine, 0.0, HOST, (), (), cold=True)
        return cold if chosen.noted else None

    def engine_of(self, chosen: Any) -> str:
        """Which a call took, or "" if none is there."""
        asked = chosen.engines[self.site]
        there = (engine for engine in (asked, *self._bodies) if engine not in self._missing)
        return next(there, "")

    def _there(self, asked: str) -> str:
        """The engine that is asked for, or the first one that is not missing."""
        for engine in (asked, *self._bodies):
            if engine not in self._missing:
                return engine
        raise self._missing[asked]

    def _outputs(self, result: Any) -> Sequence[Any]:
        """Those that stay are checked here, as no port says what they are."""
        ports = self.task.outputs
        outputs = (result,) if len(ports) == 1 else result
        listed = isinstance(outputs, (tuple, list))
        if not listed or len(outputs) != len(ports):
            many = f"{len(outputs)} values" if listed else type(result).__name__
            names = ", ".join(port.name for port in ports)
            raise PortIncompatible(f"outputs {names}: expected {len(ports)} values, given {many}")
        for number in self.stays:
            port, value = ports[number], outputs[number]
            if type(value) is not EngineArray and (complaint := port.type.check(value)):
                raise PortIncompatible(f"output {port.name!r}: {complaint}")
        return outputs


class _Body:
    """One of a task's bodies. call: takes values that are `here`. cold: before a call."""

    def __init__(self, task: Task, body: Python, stays: frozenset[int]) -> None:
        self._fun, self._engine, self.cold = body.fun, engine_of(body), True
        extents = task.extents if self._engine == "python" else ()  # else it looks at them itself
        fun = body.fun.leaving(stays) if hasattr(body.fun, "leaving") else body.fun
        self.call = as_called(fun, (body.keywords, extents))
        self.is_native = isinstance(body, NativeCode)  # its outputs are what the ports say

    @property
    def home(self) -> str:
        """Once it was called."""
        return str(getattr(self._fun, "home", HOST))

    def here(self, value: Any) -> Any:
        """The value as it can be taken."""
        away = type(value) is EngineArray and value.place != self._engine
        return value.on_host() if away else value


def _size(value: Any) -> tuple[int, str]:
    size = None if type(value) is int else size_in_bytes(value)
    return (0, HOST) if size is None else (size, getattr(value, "place", HOST))


def size_in_bytes(value: Any) -> int | None:
    """Of an array; an integer's value. None of what has no size, whatever it says of itself."""
    try:
        size = getattr(value, "nbytes", value)
    except Exception:  # of a property
        return None
    return size if type(size) is int else None
