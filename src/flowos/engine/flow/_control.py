"""Conds and loops that run within a stage. Standard library only: each worker is sent this file."""

from collections.abc import Callable, Sequence
from typing import Any


class NotDone(Exception):  # noqa: N818 - reads as what happened
    """No round of a loop was the last one. Its argument: what the last round gave."""


def choose(takes: Sequence[Sequence[int]], values: Sequence[Any]) -> tuple[int, Sequence[Any]]:
    """Which flow of a cond is run, and its inputs. values: the condition, then all inputs."""
    which = 0 if values[0] else 1
    return which, [values[i] for i in takes[which]]


def repeat(
    state: int,
    max_rounds: int,
    until: bool,
    run_round: Callable[[int, Sequence[Any]], Sequence[Any]],
    values: Sequence[Any],
) -> Any:
    """What a loop gives. run_round: takes the round's number, from 1 on, and its inputs.

    Raises NotDone if `until` holds after no round.
    """
    given = list(values)
    results: Sequence[Any] = ()
    for number in range(1, max_rounds + 1):
        results = run_round(number, given)
        if until and results[-1]:
            return as_result(results[:-1])
        given[:state] = results[:state]
    if until:
        raise NotDone(results[:-1])
    return as_result(results)


def as_result(outputs: Sequence[Any]) -> Any:
    """As a task's function returns them."""
    return outputs[0] if len(outputs) == 1 else outputs
