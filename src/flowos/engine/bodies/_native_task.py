"""Makes a task of a native body."""

from collections.abc import Callable, Sequence
from typing import Any

from flowos.model import NativeCode, NativePorts, Needs, Task, needs_of

NativeOptions = tuple[Needs | Sequence[Needs] | None, float | None, int, bool, bool | str | None]
"""Of any task: needs, limit_seconds, retries, requeue, cache."""


def native_task(
    title: str, ports: NativePorts, fun: Callable[..., Any], engine: str, options: NativeOptions
) -> Task:
    needs, limit_seconds, retries, requeue, cache = options
    return Task(
        name=title,
        inputs=ports.inputs,
        outputs=ports.outputs,
        body=NativeCode(fun, limit_seconds=limit_seconds, engine=engine),
        needs=needs_of(title, needs),
        retries=retries,
        requeue=requeue,
        cache=cache,
    )
