"""Chooses the next round, A B .. B A, until the verdicts are decided or the time is used up.

The starting case and the direction of a round are random, so that each case takes each place. In
the middle a case follows itself and finds warm caches and rested storage.
"""

from collections.abc import Collection, Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import Case, Design, Measurement, Sample, Verdict
from flowos.plan._compare import compare
from flowos.plan._order import drawn
from flowos.plan._summary import summarize
from flowos.plan._trust import NOISE_THRESHOLDS, NoiseThresholds

MAX_REPEATS = 3
LARGE_SPREAD = 0.1


def next_round(
    d: Design,
    seen: Sequence[Sample],
    left_seconds: float,
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> tuple[Case, ...]:
    """Cases of the next round in the order of `turns`, each `d.turns` times; () when done.

    With `axis` and `base`: done at the first look where every verdict is decided. At the last look,
    as many rounds as were disturbed are added, up to half. Without: `min_rounds`, then up to three
    more rounds of the cases whose numbers are marked or spread by more than a tenth. A round that
    does not fit into the time left is not started. If that is the first round of a design without
    axis, the cases that fit are measured once.

    A case that cannot be measured has no samples: remove it from the design, or it is returned
    until the time is used up.
    """
    seen = _of_design(d, seen)
    cases = _to_compare(d, seen, limits) if d.axis else _to_summarize(d, seen, limits)
    if d.turns > 1:
        cases = turns(cases, _rounds(seen), d.seed)
    if _seconds(d, cases) <= left_seconds:
        return cases
    return () if d.axis or seen else _fitting(d, left_seconds)


def turns(cases: Sequence[Case], done: int, seed: str) -> tuple[Case, ...]:
    """Order of round number `done`: the random order for that round, then its reverse."""
    forward = drawn(cases, seed, done)
    return (*forward, *reversed(forward))


def one_round(d: Design, cases: Sequence[Case], done: int, left_seconds: float) -> tuple[Case, ...]:
    """Round number `done` of these cases in the order of `turns`; () if it takes too long."""
    order = turns(cases, done, d.seed)
    return order if _seconds(d, order) <= left_seconds else ()


def judged(
    d: Design, seen: Sequence[Sample], limits: NoiseThresholds = NOISE_THRESHOLDS
) -> tuple[Verdict, ...]:
    """Verdicts of a design with `axis` and `base` at one of its looks; () between two looks."""
    seen = _of_design(d, seen)
    if _rounds(seen) not in d.looks:
        return ()
    return _verdicts(d, seen, limits)


def narrowed(d: Design, verdicts: Iterable[Verdict]) -> Design:
    """The design without the levels whose verdicts are all decided; the base stays.

    Decided levels use no more time: of three contenders, two are often decided early.
    """
    answers: dict[str, set[str]] = {}
    for verdict in verdicts:
        answers.setdefault(verdict.other, set()).add(verdict.answer)
    decided = {level for level, said in answers.items() if "inconclusive" not in said}
    return replace(d, cases=tuple(c for c in d.cases if c.level(d.axis) not in decided))


def _verdicts(d: Design, seen: Sequence[Sample], limits: NoiseThresholds) -> tuple[Verdict, ...]:
    return compare(
        seen, axis=d.axis, base=d.base, margin=d.margin, looks=len(d.looks), limits=limits
    )


def _of_design(d: Design, seen: Iterable[Sample]) -> tuple[Sample, ...]:
    seen = tuple(seen)
    cases = {s.case for s in seen}
    others = {found for found in cases if not any(_within(found, case) for case in d.cases)}
    return tuple(s for s in seen if s.case not in others) if others else seen


def _to_compare(d: Design, seen: Sequence[Sample], limits: NoiseThresholds) -> tuple[Case, ...]:
    done = _rounds(seen)
    last = d.looks[-1]
    if done < last and done not in d.looks:
        return d.cases
    verdicts = _verdicts(d, seen, limits)
    if done >= last:
        disturbed = done - min((v.rounds for v in verdicts), default=done)
        return d.cases if done < last + min(disturbed, last // 2) else ()
    reached = verdicts and all(v.answer != "inconclusive" for v in verdicts)
    return () if reached else d.cases


def _to_summarize(d: Design, seen: Sequence[Sample], limits: NoiseThresholds) -> tuple[Case, ...]:
    done = _rounds(seen)
    if done < d.min_rounds:
        return d.cases
    if done >= d.min_rounds + MAX_REPEATS:
        return ()
    unsettled = [m.case for m in summarize(seen, limits=limits) if not _settled(m)]
    return tuple(c for c in d.cases if any(_within(found, c) for found in unsettled))


def _settled(m: Measurement) -> bool:
    return m.trust.good and m.high - m.low <= LARGE_SPREAD * abs(m.median)


def _within(found: Case, case: Case) -> bool:
    """Whether it is this case, or a point of it that its program swept by itself."""
    return found.probe == case.probe and set(case.levels) <= set(found.levels)


def _rounds(seen: Iterable[Sample]) -> int:
    return len({(s.run, s.round) for s in seen})


def _seconds(d: Design, cases: Collection[Case]) -> float:
    return sum(d.seconds.get(case, 0.0) for case in cases)


def _fitting(d: Design, left_seconds: float) -> tuple[Case, ...]:
    fitting: list[Case] = []
    for case in d.cases:
        if _seconds(d, (*fitting, case)) <= left_seconds:
            fitting.append(case)
    return tuple(fitting)
