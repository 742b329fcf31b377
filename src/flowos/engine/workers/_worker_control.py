"""What is around the stages of a worker: conds and loops, cores, FlowOS where it is not installed.

Each worker is sent this file.
"""

import importlib.util
import os
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from flowos.engine.flow._control import NotDone, as_result, choose, repeat
from flowos.model._ports import brief_repr

FIRST_WORD = 2
"""Of the page of progress, for rounds."""
is_worker = False
"""Whether this process is a worker."""


class WorkerControl:
    """Makes functions of them.

    operation: makes a step of a program ready. run_steps: runs one over its registers; the first
    argument is the place of its first step. progress: gets the round of each loop from its third
    word on. failed: is raised for a loop that is not done. rounds: in which each loop is, by the
    number of its step.
    """

    def __init__(
        self,
        operation: Callable[[Any, Sequence[Any], int], tuple[Any, ...]],
        run_steps: Callable[[int, list[Any], list[Any]], None],
        progress: memoryview,
        failed: type[Exception],
    ) -> None:
        self._operation = operation
        self._run_steps = run_steps
        self._progress = progress
        self._failed = failed
        self.rounds: dict[int, int] = {}

    @property
    def _place(self) -> int:
        """Of the stage that runs now."""
        return (self._progress[0] - 1) >> 32 << 32

    def function(self, types: Any, number: int, *control: Any) -> Callable[..., Any]:
        """Of step `number`: as `WorkerProgram` describes it."""
        *about, flows = control
        runs = [self._flow(types, *flow) for flow in flows]
        if len(about) == 1:
            return self._cond(about[0], runs)
        return self._loop(number, *about, *runs)

    def _flow(
        self, types: Any, first: int, constants: bytes, steps: list[Any], returns: Sequence[int]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """Its steps are numbered from `first` on."""
        rest = pickle.loads(constants)
        program = [self._operation(types, step, first + i) for i, step in enumerate(steps)]

        def run(values: Sequence[Any]) -> list[Any]:
            registers = [*values, *rest]
            self._run_steps(self._place + first, program, registers)
            return [registers[i] for i in returns]

        return run

    def _cond(
        self, takes: Sequence[Sequence[int]], runs: Sequence[Callable[..., Any]]
    ) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            which, inputs = choose(takes, values)
            return as_result(runs[which](inputs))

        return call

    def _loop(
        self, number: int, state: int, max_rounds: int, until: bool, run: Callable[..., Any]
    ) -> Callable[..., Any]:
        word = number + FIRST_WORD
        is_reported = word < len(self._progress)

        def run_round(round: int, values: Sequence[Any]) -> Any:
            self.rounds[number] = round
            if is_reported:
                self._progress[word] = round
            return run(values)

        def call(*values: Any) -> Any:
            try:
                return repeat(state, max_rounds, until, run_round, values)
            except NotDone as late:
                shown = [brief_repr(value) for value in late.args[0]]
                raise self._failed(self._place >> 32, number, "not done", shown) from None

        return call


class WorkerBinding:
    """On which CPUs tasks run, and variables that say which devices they have."""

    def __init__(self) -> None:
        global is_worker
        is_worker = True
        self._ours = os.sched_getaffinity(0)
        self._before: dict[str, str | None] = {}

    def __call__(self, cores: Sequence[int], variables: Sequence[tuple[str, str]]) -> None:
        """All our threads: those of libraries may have been started before."""
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._before = {name: os.environ.get(name) for name, _ in variables}
        os.environ.update(variables)
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - pathlib is slow to import
            try:
                os.sched_setaffinity(int(thread), self._ours.intersection(cores) or self._ours)
            except OSError:  # it has ended, or the CPUs are not ours any more
                continue


def stand_in_for(top: str, *within: str) -> None:
    """To find flowos.model._ports by its name, pickle wants the packages above it."""
    if top in sys.modules or importlib.util.find_spec(top) is not None:
        return
    for name in (top, *(top + each for each in within)):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        module.__getattr__ = _not_installed  # type: ignore[method-assign]


def _not_installed(name: str) -> object:
    raise AttributeError(f"No module named 'flowos' where {name!r} was asked for")
