"""Estimates how many rounds a comparison needs, from the spread so far."""

import math
from bisect import bisect_left

from flowos.model import Verdict
from flowos.plan._compare import MEDIAN_ERROR, MIN_ROUNDS
from flowos.plan._intervals import student_quantile

MAX_ROUNDS = 400
"""Above this the estimate is meaningless and the wait too long."""


def rounds_to_decide(v: Verdict) -> int | None:
    """About how many rounds in total would turn 'inconclusive' into an answer.

    Assumes that the ratio and the rounds' spread stay as they are, and that Student's interval of
    the mean shrinks with more rounds. None if already decided, never interleaved, or out of reach.
    """
    if v.answer != "inconclusive":
        return None
    if v.needed:
        return v.needed
    if not (v.low > 0 and math.isfinite(v.high)):
        return MIN_ROUNDS
    if not v.rounds:
        return None
    centre, reach = abs(math.log(v.ratio)), math.log(v.high / v.low) / 2
    enough = max(centre, math.log1p(v.margin) - centre)
    deviation = reach / _reach(v.rounds)
    more = range(v.rounds + 1, MAX_ROUNDS + 1)
    at = bisect_left(more, True, key=lambda rounds: deviation * _reach(rounds) < enough)
    return more[at] if at < len(more) else None


def _reach(rounds: int) -> float:
    """Half of an interval's width, in standard deviations of a round."""
    return student_quantile(1 - MEDIAN_ERROR, rounds - 1) / math.sqrt(rounds)
