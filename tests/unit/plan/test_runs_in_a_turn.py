"""Turns of many short runs, as of commands: the promises are those of turns of one value."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from flowos.model import Case, Design, Sample
from flowos.plan import NoiseModel, SimulatedMachine, compare, next_round

FIRST, SECOND = (Case("command", (("command", name),)) for name in ("first", "second"))
DESIGN = Design(cases=(FIRST, SECOND), axis="command", base="first")
NOISE = NoiseModel(spread=0.05, spikes=0.02, spike=0.4)
"""Of a short process on a shared machine: heavy tails, one in fifty takes half as long again."""
RUNS = 6


def sampled(seed: int, ratio: float) -> Iterator[Sample]:
    machine = SimulatedMachine(seed, NOISE, turn_seconds=0.015)
    design = replace(DESIGN, seed=str(seed))
    seen: list[Sample] = []
    while cases := next_round(design, seen, math.inf):
        number = len({s.round for s in seen})
        for case in cases:
            values = tuple(machine.measure(1.0 if case is FIRST else ratio) for _ in range(RUNS))
            seen.append(
                Sample(
                    run="r", case=case, round=number, metric="wall", unit="second", values=values
                )
            )
    yield from seen


def answers(ratio: float, trials: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in range(trials):
        seen = tuple(sampled(seed, ratio))
        (verdict,) = compare(seen, axis="command", base="first", margin=DESIGN.margin)
        found[verdict.answer] += 1
    return found


@pytest.mark.no_cover
def test_of_equal_commands_at_most_one_in_twenty_is_called_different() -> None:
    found = answers(1.0, 60)
    assert found["slower"] + found["faster"] <= 3
    assert found["equal"] >= 30


@pytest.mark.no_cover
def test_a_command_that_is_a_tenth_slower_is_found() -> None:
    found = answers(1.1, 60)
    assert found["slower"] >= 54
    assert not found["equal"]
