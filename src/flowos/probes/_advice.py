"""What the advice of all probes comes to, and why there may be none."""

from collections.abc import Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import Advice, Measurement, Verdict


def merged_advice(found: Iterable[Advice]) -> tuple[Advice, ...]:
    """Sort by gain, the highest first; of equal advice the one with the highest gain."""
    by_action: dict[str, list[Advice]] = {}
    for each in sorted(found, key=lambda a: -a.gain):
        by_action.setdefault(each.do, []).append(each)
    return tuple(_together(*alike) for alike in by_action.values())


def _together(first: Advice, *others: Advice) -> Advice:
    more = f"; and {len(others)} more alike" if others else ""
    return replace(first, why=first.why + more)


def undecided(measured: Sequence[Measurement], settings: Sequence[Verdict]) -> str:
    """Why it is not known whether a setting is better; "" if that is known of one at least.

    measured: numbers of the probes that advise. settings: how their settings compare.
    """
    cases = {m.case for m in measured}
    if len(cases) == 1:
        return "only one setting was measured, so there is nothing to compare it with"
    if measured and not any(m.trust.good for m in measured):
        return "none of the numbers can be trusted"
    if settings and all(v.answer == "inconclusive" for v in settings):
        return f"none of the {len(settings)} comparisons of settings was decided"
    return ""
