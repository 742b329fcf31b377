"""The effects of cases are found apart from those of the rounds, whatever the unit."""

import math

import pytest

from flowos.model import Case, Sample
from flowos.plan import NOISE_THRESHOLDS
from flowos.probes._best import case_effects

CASES = {name: Case("p", (("name", name),)) for name in "abc"}


@pytest.mark.parametrize(("unit", "sign"), [("byte/s", 1), ("second", -1)])
@pytest.mark.parametrize("missing", [(), (("a", 0), ("b", 3))])
def test_what_a_case_adds_to_its_rounds_is_its_effect(
    unit: str, sign: int, missing: tuple[tuple[str, int], ...]
) -> None:
    """A table of sums, such as a machine that is ten times as fast in a round makes of it."""
    effects, rounds = {"a": 0.0, "b": 0.5, "c": -0.25}, (0.0, 3.0, -1.0, math.log(10), 0.5)
    samples = [
        Sample(
            run="r",
            case=CASES[name],
            round=number,
            metric="m",
            unit=unit,
            values=(math.exp(sign * (effect + of_round)),),
        )
        for name, effect in effects.items()
        for number, of_round in enumerate(rounds)
        if (name, number) not in missing
    ]
    found = case_effects(samples, NOISE_THRESHOLDS)
    for name, effect in effects.items():
        assert found[CASES[name]] - found[CASES["a"]] == pytest.approx(effect, abs=1e-9)
