"""The order of turns: drawn, so that no rhythm of the machine can side with a case."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def drawn(items: Sequence[T], seed: str, number: int) -> tuple[T, ...]:
    """The items forward or backward, begun at any of them: the same for the same seed and number.

    Neighbours stay neighbours, and of any two each is as likely to come first. So two cases that
    are alike could have changed names in any round, whatever the machine did meanwhile: a fixed
    order lets a disturbance of period 8/3 turns pass for a difference.
    """
    if not items:
        return ()
    chance = Random(f"{seed}/{number}")
    first = chance.randrange(len(items))
    forward = (*items[first:], *items[:first])
    return forward if chance.random() < 0.5 else forward[::-1]
