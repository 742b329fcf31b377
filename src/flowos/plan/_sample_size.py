"""How many rounds it would take to tell two cases apart, or equal, judging by their spread."""

import math
from bisect import bisect_left

from flowos.model import Verdict
from flowos.plan._compare import MEDIAN_ERROR, MIN_ROUNDS
from flowos.plan._intervals import student_quantile

MAX_ROUNDS = 400
"""Beyond this nobody waits, and the estimate means nothing."""


def rounds_to_tell(v: Verdict) -> int | None:
    """About how many rounds in all would turn an 'inconclusive' into an answer.

    The ratio and the rounds' spread are taken to stay as they are, and Student's interval of the
    mean to shrink with more of them. None: told already, never interleaved, or out of reach.
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
    """Half of an interval's width, in deviations of a round."""
    return student_quantile(1 - MEDIAN_ERROR, rounds - 1) / math.sqrt(rounds)
