"""How often a comparison is wrong: equal things called different, a slowdown of 5 % not found.

`python benchmarks/aa.py [--json] [--simulated N] [--real N]`
Simulated: N comparisons of each kind on machines with the noise of shared ones. Real: N times the
same program beside itself, and N times beside itself with 5 % more work, run here as any launch.
Rates come with their 95 % Wilson interval. Exit 1 when a rate misses its claim.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from flowos import engine
from flowos.model import Case, Design, Exited, Launch, Sample
from flowos.plan import Noise, SimulatedMachine, compare, next_round, regimes, simulate, wilson

BASE, OTHER = (Case("work", (("with", level),)) for level in ("base", "other"))
DESIGN = Design(cases=(BASE, OTHER), axis="with", base="base", margin=0.03)
SLOWER = 1.05
UNITS = 40
MOST_FALSE, LEAST_FOUND = 0.05, 0.90
SOURCE = Path(__file__).with_name("_disturb.c")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--simulated", type=int, default=1000)
    parser.add_argument("--real", type=int, default=50)
    wanted = parser.parse_args()
    rates = [*simulated(wanted.simulated), *regimes_simulated(wanted.simulated)]
    if wanted.real:
        rates += real(wanted.real)
    missed = [r["what"] for r in rates if not r["holds"]]
    print(
        json.dumps({"claim": "comparisons are right", "missed": missed, "rates": rates}, indent=1)
    )
    return 1 if missed else 0


def rate(
    what: str, hits: int, trials: int, least: float, most: float, **more: Any
) -> dict[str, Any]:
    """`holds`: the rate itself lies within least..most."""
    low, high = wilson(hits, trials)
    return {
        "what": what,
        "hits": hits,
        "trials": trials,
        "rate": hits / trials,
        "low": low,
        "high": high,
        "claim": f"{least:g}..{most:g}",
        "holds": least <= hits / trials <= most,
        **more,
    }


def different(what: str, answers: Iterable[str]) -> dict[str, Any]:
    """Of equal things, how many were called slower or faster."""
    counted = Counter(answers)
    hits = counted["slower"] + counted["faster"]
    return rate(what, hits, counted.total(), 0, MOST_FALSE, answers=dict(counted))


def found(what: str, answers: Iterable[str]) -> dict[str, Any]:
    """Of true slowdowns, how many were called slower."""
    counted = Counter(answers)
    return rate(what, counted["slower"], counted.total(), LEAST_FOUND, 1, answers=dict(counted))


def simulated(trials: int) -> Iterator[dict[str, Any]]:
    for spread in (0.02, 0.03, 0.04):
        noise = Noise(spread=spread)
        label = f"simulated, noise {spread:.0%}"
        yield different(f"{label}: equal called different", answers(trials, noise, 1.0))
        yield found(f"{label}: 5 % slowdown found", answers(trials, noise, SLOWER))
    switch = answers(trials, Noise(spread=0.02), 1.0, lambda seed: (Random(seed).uniform(0, 64),))
    yield different("simulated: one switch of regime called a difference", switch)
    flicker = Noise(spread=0.02, regime_seconds=3.0)
    yield different(
        "simulated, regime changes every 3 s: equal called different", answers(trials, flicker, 1.0)
    )


def answers(
    trials: int,
    noise: Noise,
    true_ratio: float,
    switches: Callable[[int], tuple[float, ...] | None] = lambda _seed: None,
) -> Iterator[str]:
    for seed in range(trials):
        machine = SimulatedMachine(seed, noise, switches=switches(seed))
        yield answer(simulate(DESIGN, {BASE: 1.0, OTHER: true_ratio}, machine))


def answer(seen: Iterable[Sample]) -> str:
    (verdict,) = compare(seen, axis="with", base="base", margin=DESIGN.margin)
    return verdict.answer


def regimes_simulated(trials: int) -> Iterator[dict[str, Any]]:
    """Rows of 16 values, a third of them in the other regime or none."""
    for step, least, most in ((1.5, LEAST_FOUND, 1), (1.0, 0, MOST_FALSE)):
        machines = (SimulatedMachine(seed, Noise(regime=1.0)) for seed in range(trials))
        rows = ([m.measure(step if i % 3 == 0 else 1.0) for i in range(16)] for m in machines)
        hits = sum(regimes(row) is not None for row in rows)
        yield rate(
            f"simulated: two regimes seen where the step is {step:g}", hits, trials, least, most
        )


def real(trials: int) -> Iterator[dict[str, Any]]:
    """A/A and planted trials take turns, so that both meet the same machine."""
    equal: list[str] = []
    planted: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        binary = f"{folder}/disturb"
        subprocess.run(["gcc", "-O2", str(SOURCE), "-o", binary], check=True)
        for _ in range(trials):
            equal.append(answer(compared(binary, UNITS)))
            planted.append(answer(compared(binary, round(UNITS * SLOWER))))
    yield different("real: equal called different", equal)
    yield found("real: 5 % more work found", planted)


def compared(binary: str, others_units: int) -> list[Sample]:
    """One whole comparison, run here."""
    units = {BASE: UNITS, OTHER: others_units}
    seen: list[Sample] = []
    for number in count():
        cases = next_round(DESIGN, seen, math.inf)
        if not cases:
            return seen
        seen += [turn(binary, case, units[case], number) for case in cases]
    raise AssertionError("unreachable")


def turn(binary: str, case: Case, units: int, number: int) -> Sample:
    before = engine.look()
    outcome = engine.run(Launch(argv=(binary, "work", str(units)), limit_seconds=60.0))
    state = engine.state_between(before, engine.look(), outcome.usage)
    if outcome.end != Exited(0):
        sys.exit(f"aa: the work ended by {outcome.end}: {outcome.stderr.decode(errors='replace')}")
    return Sample(
        run="aa",
        case=case,
        round=number,
        metric="time",
        unit="second",
        values=tuple(map(float, outcome.stdout.split())),
        state=state,
    )


if __name__ == "__main__":
    sys.exit(main())
