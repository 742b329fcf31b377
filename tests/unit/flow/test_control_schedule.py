"""Which conds and loops are steps of a stage, and which are stages with schedules of their own."""

from pathlib import Path
from typing import Any

import pytest

import flowos.model as m
from flowos.model import Flow, Needs, cond, flow_input, flow_output, loop, task
from flowos.plan import compile_flow


@task
def half(x: int) -> int:
    return x // 2


@task
def thrice(x: int, plus: int = 1) -> int:
    return 3 * x + plus


@task
def minus(x: int, y: int) -> int:
    return x - y


@task
def small(x: int) -> bool:
    return x < 2


size = task(
    {"task_name": "size", "iport_nametypes": m.File, "oport_nametypes": m.int64, "fun": len}
)


@task
def sizes(files: list[Path]) -> int:
    return len(files)


def number(name: str = "n") -> m.Port:
    return flow_input(name, m.int64)


def loop_of(body: Flow) -> Flow:
    return flow_output(loop(body, number("x"), until=small, max_rounds=3))


def labels(flow: Flow, fuse: Any = "chains") -> list[str]:
    return [stage.label for stage in compile_flow(flow, fuse=fuse).all_stages]


def test_a_loop_over_a_chain_of_python_tasks_is_a_step() -> None:
    flow = flow_output(half(loop_of(flow_output(half(number("x"))))(half(number()))))
    assert labels(flow) == ["half .. half#2"]
    (stage,) = compile_flow(flow).stages
    assert [len(step.inner) for step in stage.steps] == [0, 1, 0]
    assert labels(flow, "none") == [
        "flow/loop/half",
        "flow/loop/small",
        "half",
        "flow/loop",
        "half#2",
    ]


def test_a_loop_is_no_step_if_its_tasks_may_run_side_by_side_fail_alone_or_are_commands() -> None:
    x = number("x")
    fork = flow_output(minus(half(x), thrice(x)))
    assert labels(flow_output(loop(fork, 1, max_rounds=2)))[-1] == "loop"
    assert len(labels(flow_output(loop(fork, 1, max_rounds=2)))) == 4
    assert labels(flow_output(loop(fork, 1, max_rounds=2)), "all") == ["loop"]
    again = task(half.body.fun, retries=1)  # type: ignore[union-attr]
    assert labels(flow_output(loop(again, 1, max_rounds=2))) == ["loop/half", "loop"]
    text = m.command(["cat", m.In("x")])
    file = flow_output(text(flow_input("x", m.File)))
    assert labels(flow_output(cond(True, file, file, "/etc/hosts"))) == [
        "cond[true]/cat",
        "cond[false]/cat",
        "cond",
    ]


def test_tasks_of_a_step_need_the_same() -> None:
    wide = task(half.body.fun, name="wide", needs=Needs(cores=2))  # type: ignore[union-attr]
    (stage,) = compile_flow(flow_output(cond(True, wide, wide, 1))).all_stages
    assert (stage.needs, stage.label) == (Needs(cores=2), "cond")
    assert labels(flow_output(cond(True, wide, half, 1)))[-1] == "cond"
    assert len(labels(flow_output(cond(True, wide, half, 1)))) == 3
    assert len(labels(flow_output(half(cond(True, wide, wide, 1))))) == 2


def test_a_branch_without_tasks_is_a_step() -> None:
    same = flow_output(number("x"))
    flow = flow_output(cond(True, same, same, 1))
    for fuse in ("chains", "all", "none"):
        assert labels(flow, fuse) == ["cond"]
    (stage,) = compile_flow(flow, fuse="none").all_stages
    assert stage.in_python


@pytest.mark.parametrize(("reads", "given"), [(size, "/etc/hosts"), (sizes, ["/etc/hosts"])])
def test_a_file_that_is_written_into_a_loop_makes_its_tasks_stages(reads: Any, given: Any) -> None:
    flow = flow_output(cond(True, flow_output(reads(given)), half, x=1))
    assert labels(flow) == [f"cond[true]/{reads.name}", "cond[false]/half", "cond"]


def test_a_step_that_is_within_another_is_at_that_one() -> None:
    """As workers number them: load, cond, add, then those within cond, and those within these."""
    x = number("x")
    body = flow_output(half(loop_of(flow_output(half(number("y"))))(half(x))))
    flow = flow_output(thrice(cond(True, body, body, half(number()))))
    (stage,) = compile_flow(flow).stages
    assert [step.count_within for step in stage.steps] == [0, 10, 0]
    assert [stage.outer_step(i) for i in range(13)] == [0, 1, 2] + [1] * 10
    two = flow_output(loop(half, loop(half, 1, max_rounds=2), max_rounds=3))
    (stage,) = compile_flow(two).stages
    assert [stage.outer_step(i) for i in range(4)] == [0, 1, 0, 1]
