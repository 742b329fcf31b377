"""Turns that lag behind their neighbours, which a median does not show, and their cost.

Each turn is compared with one of the other case, measured right before or after it; the slower of
the two lags. Disturbances of both, such as drift and longer regimes, make neither lag. If two cases
are alike and the order is random, the names of each round are exchangeable, so the excess of a
round is symmetric about 0, whatever the noise. This symmetry is tested here.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean, median, quantiles
from typing import TypeVar

from flowos._dataclasses import dataclass
from flowos.plan._intervals import Interval, student
from flowos.plan._pairs import Round, RoundId

_Key = TypeVar("_Key", bound=Hashable)

MAX_LAG = 20.0
"""In logarithms: a turn that takes 5e8 times as long counts no more than this."""
SLOWEST = 0.2
"""Share of the pairs, which is a tenth of all turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Statistics of neighbouring turns of two cases, beyond their medians.

    excesses: per round, by how much other's mean time exceeds base's, as a share of the faster
        turn's.
    base, other: how many of the turns that lag most belong to each side.
    chance: probability of a difference at least this large if the sides were random.
    p90: log goodness of other over base at the 90th percentile of the lags.
    costs: the excess of each process of other over the one of base that ran next to it.
    """

    excesses: tuple[float, ...]
    base: int
    other: int
    chance: float
    p90: float
    costs: tuple[float, ...]

    @property
    def processes(self) -> int:
        """Number that each side started."""
        return len(self.costs)

    def stalls(self, min_cost: float) -> tuple[int, int]:
        """How many processes of base and of other took this share longer than their neighbour."""
        return sum(cost < -min_cost for cost in self.costs), sum(
            cost > min_cost for cost in self.costs
        )

    def mean(self, level: float) -> Interval:
        """Log goodness of other over base in the mean time, with Student's interval."""
        found = student(self.excesses, level)
        return Interval(*map(_goodness, (found.centre, found.high, found.low)))


def tail_of(cases: Sequence[Sequence[Round]], margin: float) -> Tail:
    """The tail of one case, or of several together.

    Turns of these cases in the same round of one run may belong to one process: they count
    together, and processes are counted once. Rounds that fewer than half of the cases have are left
    out. margin: in logarithms; smaller lags do not count.
    """
    lopsided = [_lopsided(rounds, margin) for rounds in cases]
    by_round: Counter[RoundId] = Counter()
    for each in lopsided:
        by_round.update({at: other - base for at, (base, other) in each.items()})
    sides = list(chain.from_iterable(each.values() for each in lopsided))
    lags = [lag for rounds in cases for r in rounds for lag in r.lags]
    return Tail(
        excesses=tuple(together([{r.at: _excess(r) for r in rounds} for rounds in cases])),
        base=sum(base for base, _ in sides),
        other=sum(other for _, other in sides),
        chance=chance_of(by_round.values()),
        p90=_p90([max(lag, 0.0) for lag in lags]) - _p90([max(-lag, 0.0) for lag in lags]),
        costs=tuple(together([dict(_costs(rounds)) for rounds in cases])),
    )


def together(cases: Sequence[Mapping[_Key, float]]) -> list[float]:
    """Value of each round, or of each turn of one, over all cases, in the order seen.

    It is the mean over the cases that have this round of the deviation from the case's own mean, so
    that a case without that round shifts nothing. Rounds that fewer than half of the cases have are
    left out.
    """
    centres = [fmean(values.values()) for values in cases]
    off: dict[_Key, list[float]] = {}
    for centre, values in zip(centres, cases, strict=True):
        for at, value in values.items():
            off.setdefault(at, []).append(value - centre)
    return [fmean(centres) + fmean(each) for each in off.values() if 2 * len(each) >= len(cases)]


def chance_of(differences: Iterable[int]) -> float:
    """Probability of a sum at least this large if the sign of each difference is random.

    An exact sign test in which a round counts by its difference.
    """
    counts = [d for d in differences if d]
    seen = abs(sum(counts))
    ways: Counter[int] = Counter({0: 1})
    for count in counts:
        moved: Counter[int] = Counter()
        for at, many in ways.items():
            moved[at + count] += many
            moved[at - count] += many
        ways = moved
    return sum(many for at, many in ways.items() if abs(at) >= seen) / sum(ways.values())


def _excess(r: Round) -> float:
    return fmean([_cost(lag) for lag in r.lags])


def _cost(lag: float) -> float:
    return math.copysign(math.expm1(min(abs(lag), MAX_LAG)), -lag)


def _costs(rounds: Sequence[Round]) -> Iterator[tuple[tuple[RoundId, int], float]]:
    """By round and place in it. Side by side, a round is one process of each."""
    for r in rounds:
        each = [_excess(r)] if r.interleaved else map(_cost, r.lags)
        yield from (((r.at, place), cost) for place, cost in enumerate(each))


def _goodness(excess: float) -> float:
    return -math.copysign(math.log1p(abs(excess)), excess)


def _lopsided(rounds: Sequence[Round], margin: float) -> dict[RoundId, tuple[int, int]]:
    """Per round, how many turns of base and of other are among those that lag most.

    A lag counts relative to the median difference, which is tested separately, and only above the
    margin.
    """
    lags = [lag for r in rounds for lag in r.lags]
    centre = median(lags)
    far = sorted((abs(lag - centre) for lag in lags), reverse=True)
    min_cost = max(margin, far[math.ceil(SLOWEST * len(far)) - 1])
    return {
        r.at: (
            sum(lag - centre >= min_cost for lag in r.lags),
            sum(centre - lag >= min_cost for lag in r.lags),
        )
        for r in rounds
    }


def _p90(lags: Sequence[float]) -> float:
    return quantiles(lags, n=10, method="inclusive")[-1]
