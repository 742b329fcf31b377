"""Two runs beside each other: what can be said of numbers that were not interleaved."""

from collections.abc import Iterable

from flowos.model import Measurement, Verdict, lower_is_better

UNPAIRED = "the runs were not interleaved: only the ranges say something"


def side_by_side(
    base: Iterable[Measurement], other: Iterable[Measurement], *, names: tuple[str, str]
) -> tuple[Verdict, ...]:
    """One verdict per case and metric that both runs have, in the order of `other`.

    ratio: of the medians; low and high: of the quartiles that lie nearest and farthest, which is no
    confidence interval. The answer is always 'cannot tell', since the machine may have changed
    between the runs in ways that nobody watched.
    """
    before = {(m.case, m.metric, m.unit): m for m in base}
    pairs = ((before.get((m.case, m.metric, m.unit)), m) for m in other)
    return tuple(_beside(b, o, names) for b, o in pairs if b is not None and _positive(b, o))


def _positive(*measured: Measurement) -> bool:
    return all(m.low > 0 for m in measured)


def _beside(base: Measurement, other: Measurement, names: tuple[str, str]) -> Verdict:
    better, worse = (base, other) if lower_is_better(base.unit) else (other, base)
    return Verdict(
        probe=base.case.probe,
        axis="run",
        base=names[0],
        other=names[1],
        rest=base.case.levels,
        metric=base.metric,
        ratio=better.median / worse.median,
        low=better.low / worse.high,
        high=better.high / worse.low,
        margin=0.0,
        rounds=0,
        answer="cannot tell",
        why=UNPAIRED,
    )
