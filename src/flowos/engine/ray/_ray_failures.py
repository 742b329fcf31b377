"""Errors for what an actor of Ray reports, or Ray of an actor, worded as for worker processes."""

import pickle
from typing import Any

from flowos.engine.flow._errors import line
from flowos.engine.flow._failures import RemoteTraceback, refused
from flowos.engine.workers._functions import dumps
from flowos.engine.workers._worker_failures import RemoteError
from flowos.model import FlowosError, WorkerLost
from flowos.plan import Stage

_DETAIL = "Worker exit detail: "
_UNREADABLE = "its inputs cannot be read in the worker process"
_REASONS = {
    "connection error code 2": "it crashed or was killed",
    "temporarily unavailable": "it does not answer",
    "raylet process": "Ray's process on that node is gone",
    "killed by `ray.kill`": "its node is lost",
    "its node has died": "its node is lost",
}


def failure_of(stage: Stage, cause: Any, error: Any, known: Any) -> FlowosError | None:
    """None if the actor is gone. cause: of an error in the actor; known: Ray's exceptions."""
    if isinstance(cause or error, known.RaySystemError):  # of unpickling
        words = "output: cannot be read here" if cause is None else _UNREADABLE
        why = str(cause or error).strip().rpartition("\n")[2]
        return refused(stage.steps[0].label, f"{words}: {why}")
    if cause is None or isinstance(cause, known.RayError):
        return None
    step = stage.steps[-1]
    names = ", ".join(port.name for port in step.task.outputs)
    why = first_line(cause)
    return refused(step.label, f"output {names!r}: cannot leave its worker process: {why}")


def lost_with(label: str, node: str, error: BaseException) -> WorkerLost:
    """error: what Ray says; many lines."""
    words = str(error).strip()
    detail = (words.partition(_DETAIL)[2] or words).partition("\n")[0].partition(". ")[0]
    why = next((reason for said, reason in _REASONS.items() if said in words), detail)
    lost = WorkerLost(f"task {label!r}: its worker of Ray on {node} is gone: {why}")
    lost.node = node
    return lost


def raised(error: FlowosError, cause: bytes | None, last: str, trace: str) -> FlowosError:
    """The error of a task: see `ray_worker.Failure`."""
    if last:
        found: BaseException = RemoteError(last)
        if cause is not None:
            try:
                found = pickle.loads(cause)
            except Exception:  # its class is known there only
                found = RemoteError(last)
        BaseException.__setattr__(found, "__cause__", RemoteTraceback(trace))
        error.__cause__ = found
    return error


def unsendable(value: object) -> str:
    """Why it cannot be sent; "" if it can."""
    try:
        dumps(value)
    except Exception as error:
        return first_line(error)
    return ""


def first_line(error: BaseException) -> str:
    """Ray's own have many."""
    return line(error).partition("\n")[0]
