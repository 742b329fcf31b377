"""What the README says of arrays: tasks on threads share them, tasks in worker processes do not."""

from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.model import flow_input

SIZES = (10, 100_000)
"""In the message, and in shared memory."""


@fo.task
def write(x: fo.array(fo.float64)) -> fo.float64:  # type: ignore[valid-type]
    x += 1.0
    return float(x[0])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("way", "shared"), [("thread", True), ("inline", True), ("process", False)]
)
def test_who_sees_what_a_task_writes_into_its_input(way: Any, shared: bool, size: int) -> None:
    with fo.slice(write(flow_input("x", fo.array(fo.float64))), workers=way) as s:
        array = np.zeros(size)
        assert s.run(array) == [1.0]
        assert array[0] == (1.0 if shared else 0.0)


@fo.task
def make(n: int) -> list[int]:
    return [n]


@fo.task
def push(numbers: list[int]) -> int:
    numbers.append(1)
    return len(numbers)


@pytest.mark.parametrize(("fuse", "seen"), [("none", [7]), ("chains", [7, 1])])
def test_tasks_of_one_step_share_values_in_a_worker_too(fuse: Any, seen: list[int]) -> None:
    numbers = make(flow_input("n", fo.int64))
    flow = fo.flow_output(numbers, push(numbers))
    with fo.slice(flow, workers="process", fuse=fuse) as s:
        assert s.run(7) == [seen, 2]
