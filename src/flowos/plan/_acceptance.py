"""Judges the numbers of a run against a baseline, and the run as a whole."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import Baseline, BaselineNumber, Case, Measurement, Unmeasured
from flowos.plan._repeated import goodness
from flowos.plan._unpaired import Numbers, RunsOutcome, is_within

CheckAnswer = Literal["pass", "worse", "better", "not measured", "cannot judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCheck:
    """A number of a baseline, and what a run has for it. value: None if it has none."""

    number: BaselineNumber
    value: float | None
    answer: CheckAnswer
    why: str = ""

    @property
    def judged(self) -> bool:
        return self.answer in ("pass", "worse", "better")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCheck:
    """A run checked against a baseline. why: what keeps it from an answer, one line each."""

    run: str
    numbers: tuple[NumberCheck, ...]
    answer: RunsOutcome
    why: tuple[str, ...] = ()


def checked(
    baseline: Baseline, found: Numbers, unmeasured: Sequence[tuple[Case, Unmeasured]] = ()
) -> BaselineCheck:
    """Judge a run's numbers.

    unmeasured: why cases of the run have no number; `found.failed` are those of them that had time
    enough. A number outside its limits is not judged if it is marked, unless the baseline had to
    use marked numbers for it, too. The answer is 'worse' if any number is. It is 'cannot judge' if
    a case of a number failed, or if of any probe no more than half of the numbers can be judged.
    """
    has = found.by_key
    rows = tuple(
        _judged(number, m, baseline.max_tolerance)
        if (m := has.get((number.case, number.metric, number.unit))) is not None
        else _not_measured(number, found, unmeasured)
        for number in baseline.numbers
    )
    why = tuple(_open(rows, found))
    worse = any(row.answer == "worse" for row in rows)
    answer: RunsOutcome = "worse" if worse else "cannot judge" if why else "equal or better"
    return BaselineCheck(run=found.run, numbers=rows, answer=answer, why=why)


def _not_measured(
    number: BaselineNumber, found: Numbers, unmeasured: Sequence[tuple[Case, Unmeasured]]
) -> NumberCheck:
    early = f"the run ended early, as {found.ended_early}" if found.ended_early else ""
    reasons = (why.reason for case, why in unmeasured if is_within(number.case, case))
    why = next(reasons, early or "the run has no such number")
    return NumberCheck(number=number, value=None, answer="not measured", why=why)


def _judged(number: BaselineNumber, m: Measurement, widest: float) -> NumberCheck:
    answer, why = _answer(number, m, widest)
    return NumberCheck(number=number, value=m.value, answer=answer, why=why)


def _answer(number: BaselineNumber, m: Measurement, widest: float) -> tuple[CheckAnswer, str]:
    if not (m.value > 0 and math.isfinite(m.value)):
        return "cannot judge", "it is not above 0, so that there is no ratio"
    off = goodness(m.value, number.unit) - goodness(number.median, number.unit)
    if abs(off) > math.log1p(number.tolerance):
        if m.trust.marks and not number.disturbed:
            return "cannot judge", f"not to be trusted: {m.trust.marks[0]}"
        return ("worse" if off < 0 else "better"), ""
    if number.tolerance > widest:
        return "cannot judge", f"its {number.runs} runs scatter too much"
    return "pass", ""


def _open(rows: Sequence[NumberCheck], found: Numbers) -> Iterable[str]:
    """Why a probe cannot be judged."""
    for probe in dict.fromkeys(row.number.probe for row in rows):
        ours = [row for row in rows if row.number.probe == probe]
        missing = [row for row in ours if row.value is None]
        failed = sum(any(is_within(r.number.case, case) for case in found.failed) for r in missing)
        if failed:
            yield f"{probe}: {failed} of {len(ours)} numbers could not be measured"
        elif 2 * sum(row.judged for row in ours) <= len(ours):
            lacking = [row for row in ours if not row.judged]
            counts = f"{len(lacking)} of {len(ours)} numbers cannot be judged"
            yield f"{probe}: {counts}; {_most(lacking)}"


def _most(lacking: Sequence[NumberCheck]) -> str:
    """The commonest reason."""
    reasons = [row.why for row in lacking]
    return max(dict.fromkeys(reasons), key=reasons.count)
