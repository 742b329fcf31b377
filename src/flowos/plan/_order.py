"""Random order of turns, so that no rhythm of the machine favours one case."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def drawn(items: Sequence[T], seed: str, number: int) -> tuple[T, ...]:
    """The items forward or backward, starting at a random one; depends on seed and number only.

    Neighbours stay neighbours, and of any two items each is equally likely to come first. If two
    cases are alike, their names are therefore exchangeable in every round, whatever the machine
    does. With a fixed order, a disturbance with a period of 8/3 turns looks like a difference.
    """
    if not items:
        return ()
    chance = Random(f"{seed}/{number}")
    first = chance.randrange(len(items))
    forward = (*items[first:], *items[:first])
    return forward if chance.random() < 0.5 else forward[::-1]
