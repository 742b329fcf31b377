"""How much the place of nodes changes what is measured between them.

Each deployment of nodes is a run of its own. Deployments follow one another, so that verdicts are
those of runs that were not interleaved: `side_by_side`, each with the first.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import Case, Measurement, Verdict
from flowos.plan._unpaired import Numbers, side_by_side

Spreading = Literal["differ", "equal", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpread:
    """A number in each deployment.

    medians: of each, in their order. between: by which share the largest median exceeds the
    smallest. within: interquartile range over median in one deployment, the median of all.
    verdicts: of each but the first, compared with the first. answer: "differ" if any of them does,
    "equal" if all are equal.
    """

    case: Case
    metric: str
    unit: str
    medians: tuple[float, ...]
    between: float
    within: float
    verdicts: tuple[Verdict, ...]
    answer: Spreading

    @property
    def median(self) -> float:
        return median(self.medians)

    @property
    def why(self) -> str:
        """Why it is inconclusive: what the first verdict says that is."""
        return next((v.why for v in self.verdicts if v.answer == "inconclusive"), "")


def spreads(
    deployments: Sequence[Numbers], *, margin: float, shown: Callable[[Measurement], bool]
) -> tuple[DeploymentSpread, ...]:
    """Of each number that is shown and that all have, in the order of the first deployment.

    Differences up to `margin` count as equal.
    """
    first, *others = deployments
    keys = [number.by_key for number in deployments]
    verdicts = [
        {(v.rest, v.metric): v for v in side_by_side(first, other, margin=margin)}
        for other in others
    ]
    return tuple(
        _spread([found[key] for found in keys], [of[key[0].levels, key[1]] for of in verdicts])
        for key, m in keys[0].items()
        if shown(m) and all(key in found for found in keys)
    )


def _spread(found: Sequence[Measurement], verdicts: Sequence[Verdict]) -> DeploymentSpread:
    medians = tuple(m.median for m in found)
    positive = min(medians) > 0
    return DeploymentSpread(
        case=found[0].case,
        metric=found[0].metric,
        unit=found[0].unit,
        medians=medians,
        between=max(medians) / min(medians) - 1 if positive else 0.0,
        within=median((m.high - m.low) / m.median for m in found) if positive else 0.0,
        verdicts=tuple(verdicts),
        answer=_answer(verdicts),
    )


def _answer(verdicts: Sequence[Verdict]) -> Spreading:
    answers = {verdict.answer for verdict in verdicts}
    if answers & {"slower", "faster"}:
        return "differ"
    return "equal" if answers == {"equal"} else "inconclusive"
