"""When one node more is held, and which are given back."""

from typing import Any

import pytest

from flowos.plan import MAX_FAILURES, GrowthStep, GrowthView, NodeRange, growth_step, why_no_node

NODES = NodeRange(min_nodes=1, max_nodes=3, idle_seconds=10)
FROM_0 = NodeRange(min_nodes=0, max_nodes=2, idle_seconds=10)
NOTHING = GrowthStep()
GROW = GrowthStep(grow=True)


def step(nodes: NodeRange = NODES, **view: Any) -> GrowthStep:
    return growth_step(GrowthView(**view), nodes)


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, NOTHING), (0.49, NOTHING), (0.5, GROW)])
def test_it_grows_once_a_backlog_has_lasted(seconds: float, expected: GrowthStep) -> None:
    assert step(idle=(0.0,), backlog=1, backlog_seconds=seconds) == expected


def test_it_grows_at_once_where_no_node_is_held() -> None:
    assert step(FROM_0, backlog=1) == GROW
    assert step(FROM_0) == NOTHING


def test_the_least_is_held_without_work() -> None:
    assert step() == GROW
    assert step(NodeRange(min_nodes=2, max_nodes=3, idle_seconds=1), idle=(0.0,)) == GROW


def test_no_more_are_held_than_the_most() -> None:
    assert step(idle=(0.0,) * 3, backlog=9, backlog_seconds=9.0) == NOTHING
    assert step(idle=(0.0,) * 2, leaving=1, backlog=9, backlog_seconds=9.0) == NOTHING


@pytest.mark.parametrize(
    ("failures", "seconds", "expected"),
    [
        (1, 0.49, NOTHING),
        (1, 0.5, GROW),
        (2, 0.99, NOTHING),
        (2, 1.0, GROW),
        (MAX_FAILURES, 1e6, NOTHING),
    ],
)
def test_it_tries_again_later_after_each_failure_and_then_no_more(
    failures: int, seconds: float, expected: GrowthStep
) -> None:
    assert step(FROM_0, backlog=1, failures=failures, failed_seconds=seconds) == expected


def test_nodes_that_were_idle_for_long_are_given_back_down_to_the_least() -> None:
    assert step(idle=(0.0, 10.0, 9.99)) == GrowthStep(give_back=(1,))
    assert step(idle=(10.0, 12.0, 11.0)) == GrowthStep(give_back=(1, 2))
    assert step(FROM_0, idle=(10.0, 12.0)) == GrowthStep(give_back=(1, 0))
    assert step(idle=(99.0,)) == NOTHING


def test_none_is_given_back_while_one_is_waited_for() -> None:
    assert step(idle=(99.0, 99.0), coming=True, backlog=1) == NOTHING


def test_it_waits_no_longer_once_there_was_no_work_for_as_long_as_a_node_may_be_idle() -> None:
    assert step(FROM_0, coming=True, quiet_seconds=9.99) == NOTHING
    assert step(FROM_0, coming=True, quiet_seconds=10.0) == GrowthStep(withdraw=True)
    assert step(FROM_0, coming=True, backlog=1, quiet_seconds=10.0) == NOTHING
    assert step(NODES, coming=True, quiet_seconds=99.0) == NOTHING  # fewer than the least


@pytest.mark.parametrize(
    "nodes", [(8, 0), (0, 0), (-1, 2), (1.0, 2), (True, 2), (0, None), ("0", "8")]
)
def test_a_range_that_cannot_be_is_refused(nodes: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match=r"nodes=.*; expected \(MIN, MAX\)"):
        NodeRange(min_nodes=nodes[0], max_nodes=nodes[1], idle_seconds=1)


@pytest.mark.parametrize("seconds", [0, -1, 1e9, float("nan"), "5", True])
def test_an_idle_time_that_cannot_be_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match=r"idle_seconds=.*; expected a finite number above 0"):
        NodeRange(min_nodes=0, max_nodes=1, idle_seconds=seconds)


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (GrowthView(), "one is asked for when work has waited for a while"),
        (GrowthView(coming=True), "the pool was asked for one, and said: Priority"),
        (
            GrowthView(coming=True, failures=1),
            "the pool was asked for one, and said: Priority; before, none came: no quota",
        ),
        (GrowthView(failures=2), "none came (no quota); the pool is asked again"),
        (
            GrowthView(idle=(0.0, 0.0), leaving=1, failures=1),
            "the slice holds 3, the most that it may, and they have no room",
        ),
    ],
)
def test_work_that_waits_is_told_why_no_node_comes(view: GrowthView, why: str) -> None:
    assert why_no_node(view, NODES, "Priority", "no quota") == why


def test_a_pool_that_has_said_nothing_is_told_of_so() -> None:
    why = why_no_node(GrowthView(coming=True), NODES, "", "")
    assert why == "the pool was asked for one, and said: nothing yet"
