"""What runs in an actor of Ray: stages of one schedule, as in a worker process.

Its messages are pickles of what is named here; the other end is `_ray_lanes.py`.
"""

import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from time import perf_counter, thread_time
from typing import Any

from flowos.engine.flow._errors import line
from flowos.engine.flow._kernel import CompiledStage, StopFlag
from flowos.engine.flow._lanes import RowTimes
from flowos.engine.launch._same_flowos import Sizes, Unlike, unlike
from flowos.engine.ray._ray_values import Nth
from flowos.engine.workers._functions import dumps
from flowos.model import FlowosError

Failure = tuple[FlowosError, bytes | None, str, str]
"""The error; its cause as a pickle, if that can be had; the last line and the traceback of that."""
RayAnswer = tuple[list[Any], Failure | None, RowTimes, tuple[str, str]]
"""Values of the stages or rows that came to an end, what the next one failed with, times, and what
tasks printed."""
_READ_ONLY = "read-only"
is_worker = False
"""Whether this process is a worker."""


class RayWorker:
    """path: folders of a person's code, as far as they are there. flowos: see `unlike`."""

    def __init__(self, path: Sequence[str], flowos: Sizes) -> None:
        global is_worker
        is_worker = True
        sys.path += [folder for folder in path if folder not in sys.path]
        self._flowos = flowos
        self._stages: dict[int, tuple[CompiledStage, frozenset[int]]] = {}

    def load(self, program: bytes) -> tuple[str | Unlike, str]:
        """From now on it runs this one. Why it cannot, or ""; and Ray's name of this node.

        program: a pickle of number -> (stage, which of its outputs stay in Ray). Where another
        FlowOS is there, the first answer is how it is unlike ours.
        """
        if there := unlike(self._flowos):
            return there, _node()
        try:
            stages = pickle.loads(program)
        except Exception as error:
            return line(error), ""
        self._stages = {n: (CompiledStage(stage), stay) for n, (stage, stay) in stages.items()}
        return "", _node()

    def run(self, numbers: Sequence[int], rows: Sequence[Sequence[Any]], *lying: Any) -> Any:
        """Run stages. Gives a `RayAnswer`, then what stays in Ray: None where a stage failed.

        lying: values that lie in Ray; an `Nth` stands for each in the rows.
        """
        stays: list[Any] = []
        answer: list[Any] = []
        failure = None
        with _printing() as printed:
            for number, row in zip(numbers, rows, strict=True):
                compiled, stay = self._stages[number]
                given = [lying[v.number] if type(v) is Nth else v for v in row]
                if failure is None:
                    values, failure = _run(compiled, given)
                if failure is not None:
                    stays += [None] * len(stay)
                    continue
                stays += [values[i] for i in sorted(stay)]
                answer.append([None if i in stay else value for i, value in enumerate(values)])
        found: RayAnswer = (answer, failure, RowTimes(), printed())
        return [found, *stays] if stays else found

    def run_rows(self, number: int, rows: Sequence[Sequence[Any]], seconds: float) -> RayAnswer:
        """Run one stage for as many rows as that takes these seconds."""
        compiled, _ = self._stages[number]
        results: list[Any] = []
        failure = None
        worked, began = thread_time(), perf_counter()
        before = now = began
        with _printing() as printed:
            for row in rows:
                before = now
                values, failure = _run(compiled, row)
                now = perf_counter()
                if failure is not None:
                    break
                results.append(list(values))
                if now > began + seconds:
                    break
        times = RowTimes(now - began, now - before, thread_time() - worked)
        return results, failure, times, printed()


def _node() -> str:
    return str(sys.modules["ray"].get_runtime_context().get_node_id())


@contextmanager
def _printing() -> Iterator[Callable[[], tuple[str, str]]]:
    """Gives what is printed in it."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        yield lambda: (out.getvalue(), err.getvalue())


def _run(compiled: CompiledStage, row: Sequence[Any]) -> tuple[Sequence[Any], Failure | None]:
    try:
        return compiled.run(row, StopFlag()), None
    except FlowosError as error:
        return (), _failure(error)


def _failure(error: FlowosError) -> Failure:
    cause = error.__cause__
    if cause is None:
        return error, None, "", ""
    trace = "".join(traceback.format_exception(cause))
    error.__cause__ = error.__traceback__ = None
    if isinstance(cause, ValueError) and _READ_ONLY in str(cause):
        error.args = (f"{error}; Ray shares arrays between tasks: change a copy, as x.copy()",)
    return error, _pickled(cause), line(cause), trace


def _pickled(cause: BaseException) -> bytes | None:
    try:
        return dumps(cause)
    except Exception:  # what a person raised
        return None
