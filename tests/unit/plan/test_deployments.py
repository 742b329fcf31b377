"""How much a number differs between deployments of nodes, and inside one."""

from dataclasses import replace

import pytest

from flowos.model import Case, Measurement, Trust
from flowos.plan import DeploymentSpread, Numbers, spreads

LATENCY = Measurement(
    case=Case("mpi", (("mpi", "openmpi"), ("bytes", "8"))),
    metric="latency",
    unit="second",
    count=8,
    median=2e-6,
    low=1.98e-6,
    high=2.02e-6,
    best=1.9e-6,
)


def of(*medians: float, **changes: object) -> tuple[DeploymentSpread, ...]:
    """Deployments in which the latency has these medians. changes: of the last one."""
    found = [replace(LATENCY, median=m, low=m * 0.99, high=m * 1.01, best=m * 0.9) for m in medians]
    found[-1] = replace(found[-1], **changes)  # type: ignore[arg-type]
    numbers = [Numbers(run=f"r{n}", measurements=(m,)) for n, m in enumerate(found, 1)]
    return spreads(numbers, margin=0.05, shown=lambda m: m.metric == "latency")


@pytest.mark.parametrize(
    ("medians", "answer", "between"),
    [
        ((2e-6, 2e-6), "equal", 0.0),
        ((2e-6, 2.02e-6), "equal", 0.01),
        ((2e-6, 3e-6), "differ", 0.5),
        ((3e-6, 2e-6, 3e-6), "differ", 0.5),
        ((2e-6, 2.12e-6), "differ", 0.06),
        ((2e-6,), "inconclusive", 0.0),  # nothing to compare with
    ],
)
def test_deployments_differ_equal_or_are_not_known_to(
    medians: tuple[float, ...], answer: str, between: float
) -> None:
    (found,) = of(*medians)
    assert (found.answer, found.medians) == (answer, medians)
    assert found.between == pytest.approx(between)
    assert found.within == pytest.approx(0.02)
    assert len(found.verdicts) == len(medians) - 1


def test_a_marked_number_is_inconclusive_and_says_why() -> None:
    (found,) = of(2e-6, 3e-6, trust=Trust(marks=("the clock went away",)))
    assert found.answer == "inconclusive"
    assert found.why == "not to be trusted: r2: the clock went away"
    assert found.median == pytest.approx(2.5e-6)


def test_a_number_that_is_0_has_no_spread() -> None:
    (found,) = of(2e-6, 0.0)
    assert (found.between, found.within, found.answer) == (0.0, 0.0, "inconclusive")


def test_numbers_that_are_not_shown_or_not_in_all_are_left_out() -> None:
    other = replace(LATENCY, metric="bandwidth")
    first = Numbers(run="a", measurements=(LATENCY, other))
    both = spreads([first, Numbers(run="b", measurements=(other,))], margin=0.05, shown=bool)
    assert [each.metric for each in both] == ["bandwidth"]
    assert of(2e-6, 2e-6, metric="rate") == ()
