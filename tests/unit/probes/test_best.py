"""The effects of cases are found apart from those of the rounds, whatever the unit."""

import math
from dataclasses import replace

import pytest

from flowos.model import Case, MachineState, Sample
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


def turn(name: str, number: int, value: float, *, disturbed: bool = False) -> Sample:
    state = MachineState(others_cpus=1.0) if disturbed else MachineState()
    return Sample(
        run="r",
        case=CASES[name],
        round=number,
        metric="m",
        unit="byte/s",
        values=(value,),
        state=state,
    )


def test_disturbed_turns_count_only_where_a_case_has_no_others() -> None:
    slow = turn("a", 0, 1.0, disturbed=True)
    quiet = [turn("a", 1, 4.0), turn("b", 0, 2.0), turn("b", 1, 2.0)]
    found = case_effects([slow, *quiet], NOISE_THRESHOLDS)
    assert found[CASES["a"]] - found[CASES["b"]] == pytest.approx(math.log(2))
    only = case_effects([slow, turn("b", 0, 2.0)], NOISE_THRESHOLDS)
    assert only[CASES["a"]] - only[CASES["b"]] == pytest.approx(-math.log(2))


def test_the_turns_of_a_case_in_one_round_count_together() -> None:
    """In two rounds each; there and back in the first, and of runs that are numbered alike."""
    seen = [turn("a", 0, 1.0), turn("a", 0, 4.0), turn("b", 0, 1.0)]
    seen += [turn("a", 1, 4.0), turn("b", 1, 2.0)]
    other_run = [replace(s, run="s", values=tuple(10 * v for v in s.values)) for s in seen]
    found = case_effects([*seen, *other_run], NOISE_THRESHOLDS)
    assert found[CASES["a"]] - found[CASES["b"]] == pytest.approx(math.log(2))
