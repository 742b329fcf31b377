"""Calls that a newcomer gets wrong: one line says what was wrong, and how it is written."""

from collections.abc import Callable
from typing import Any

import pytest

import flowos as fo

f: Any = fo  # wrong on purpose


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (
            lambda: f.command(["ls", fo.In("n")], inputs=["n"]),
            fo.WiringError,
            "command 'ls': inputs=['n'] (list); expected a type for each name",
        ),
        (lambda: f.flow_input(int, "n"), fo.WiringError, "a text, given <class 'int'> (type); it"),
        (lambda: f.task(fo.int64), fo.WiringError, "expected a function, given"),
        (lambda: f.array(fo.float64, 3.5), TypeError, "array shape 3.5: expected non-negative"),
    ],
)
def test_one_line_says_how_it_is_written(
    call: Callable[[], object], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind) as found:
        call()
    assert says in str(found.value)
    assert "\n" not in str(found.value)
