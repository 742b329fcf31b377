"""Bodies in languages whose programs serve a worker, for tests: made, run, and what they refuse."""

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowos as fo

VECTOR, MATRIX = fo.array(fo.float64, ("n",)), fo.array(fo.float64, ("n", "m"))
X = np.arange(3.0)
needs_julia = pytest.mark.skipif(not shutil.which("julia"), reason="no Julia: not in Debian 12")


def vector(dtype: Any) -> Any:
    return fo.array(dtype, ("n",))


def in_r(text: str, takes: Any = VECTOR, gives: Any = VECTOR, **options: Any) -> Any:
    code = f"f <- function(x) {{\n{text}\n}}"
    return fo.r(code, "f", inputs={"x": takes}, outputs={"y": gives}, **options)


def in_julia(text: str, takes: Any = VECTOR, gives: Any = VECTOR, **options: Any) -> Any:
    code = f"function f(x)\n{text}\nend"
    return fo.julia(code, "f", inputs={"x": takes}, outputs={"y": gives}, **options)


BODIES: dict[str, Callable[..., Any]] = {"r": in_r, "julia": in_julia}


def opened(task: Any, **options: Any) -> Any:
    calls = task(*[fo.flow_input(port.name, port.type) for port in task.inputs])
    outputs = calls if len(task.outputs) > 1 else (calls,)
    return fo.slice(fo.flow_output(*outputs), **{"workers": "inline", **options})


def run(task: Any, *values: object, **options: Any) -> list[Any]:
    with opened(task, **options) as held:
        found: list[Any] = held.run(*values)
    return found


def failure(task: Any, *values: object, **options: Any) -> str:
    with pytest.raises(fo.FlowosError) as caught:
        run(task, *values, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
