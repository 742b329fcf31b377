"""Error rates of comparisons: equal programs called different, a slowdown of 5 % not found.

`python benchmarks/aa.py [--json] [--simulated N] [--real N] [--table]`
Simulated: N comparisons for each noise model and true ratio (`_simulated_kinds`); --table prints
only their rates, as in docs/comparisons.md. Real: a program compared N times with itself, N times
with itself doing 5 % more work, and N times with itself at half speed in 15 % of its runs, as in a
throttled container; run on this machine.
Rates are printed with their 95 % Wilson interval. Exit 1 when a rate misses its claim.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path
from random import Random
from typing import Any

from _numbers import whole_number
from _simulated_kinds import BASE, DESIGN, DIFFERENT, KINDS, OTHER, rates_of

from flowos import engine
from flowos.model import Case, Exited, Launch, Sample
from flowos.plan import NoiseModel, SimulatedMachine, compare, next_round, regimes, wilson

SLOWER = 1.05
HALF_SPEED_SHARE = 0.15
UNITS = 40
MAX_FALSE, MIN_FOUND = 0.05, 0.90
_COLUMNS = (("equal",), DIFFERENT, ("inconclusive",))
SOURCE = Path(__file__).with_name("_disturb.c")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--simulated", type=whole_number(), default=200)
    parser.add_argument("--real", type=whole_number(0), default=50)
    parser.add_argument("--table", action="store_true", help="the simulated rates, as Markdown")
    wanted = parser.parse_args()
    if wanted.table:
        print_table(wanted.simulated)
        return 0
    rates = [*simulated(wanted.simulated), *regimes_simulated(wanted.simulated)]
    if wanted.real:
        rates += real(wanted.real)
    missed = [r["what"] for r in rates if not r["holds"]]
    print(
        json.dumps({"claim": "comparisons are right", "missed": missed, "rates": rates}, indent=1)
    )
    return 1 if missed else 0


def rate(what: str, hits: int, trials: int, low: float, high: float, **more: Any) -> dict[str, Any]:
    """`holds`: the rate itself lies within low..high."""
    lower, upper = wilson(hits, trials)
    return {
        "what": what,
        "hits": hits,
        "trials": trials,
        "rate": hits / trials,
        "low": lower,
        "high": upper,
        "claim": f"{low:g}..{high:g}",
        "holds": low <= hits / trials <= high,
        **more,
    }


def different(what: str, answers: Iterable[str]) -> dict[str, Any]:
    """The share of equal programs that were called slower or faster."""
    counted = Counter(answers)
    hits = counted["slower"] + counted["faster"]
    return rate(what, hits, counted.total(), 0, MAX_FALSE, answers=dict(counted))


def found(what: str, answers: Iterable[str]) -> dict[str, Any]:
    """The share of true slowdowns that were called slower."""
    counted = Counter(answers)
    return rate(what, counted["slower"], counted.total(), MIN_FOUND, 1, answers=dict(counted))


def simulated(trials: int) -> Iterator[dict[str, Any]]:
    """Each noise model and true ratio; `hits` are the false answers."""
    for kind in KINDS:
        rates = rates_of(kind, trials)
        yield rate(
            f"simulated, {kind.name}: called {' or '.join(kind.wrong)}",
            rates.wrong,
            trials,
            0,
            MAX_FALSE,
            answers=dict(rates.answers),
            rounds_to_equal=rates.rounds,
        )


def print_table(trials: int) -> None:
    """Print the rates as in docs/comparisons.md, each row as soon as it is known."""
    print("| truth, and machine | called equal | called different | inconclusive | rounds |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for kind in KINDS:
        rates = rates_of(kind, trials)
        shares = (sum(rates.answers[answer] for answer in those) for those in _COLUMNS)
        rounds = f"{rates.rounds:.0f}" if rates.rounds else "-"
        cells = (kind.name, *(f"{100 * share / trials:g}" for share in shares), rounds)
        print(f"| {' | '.join(cells)} |", flush=True)


def answer(seen: Iterable[Sample]) -> str:
    (verdict,) = compare(seen, axis="with", base="base", margin=DESIGN.margin)
    return verdict.answer


def regimes_simulated(trials: int) -> Iterator[dict[str, Any]]:
    """Series of 16 values, a third of them in a second regime, or none."""
    for step, low, high in ((1.5, MIN_FOUND, 1), (1.0, 0, MAX_FALSE)):
        machines = (SimulatedMachine(seed, NoiseModel(regime=1.0)) for seed in range(trials))
        rows = ([m.measure(step if i % 3 == 0 else 1.0) for i in range(16)] for m in machines)
        hits = sum(regimes(row) is not None for row in rows)
        yield rate(
            f"simulated: two regimes seen where the step is {step:g}", hits, trials, low, high
        )


def real(trials: int) -> Iterator[dict[str, Any]]:
    """Alternate A/A and planted trials, so that both see the same machine."""
    equal: list[str] = []
    planted: list[str] = []
    throttled: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        binary = f"{folder}/disturb"
        subprocess.run(["gcc", "-O2", str(SOURCE), "-o", binary], check=True)
        for trial in range(trials):
            equal.append(answer(compared(binary, repeat(UNITS), f"equal {trial}")))
            slower = repeat(round(UNITS * SLOWER))
            planted.append(answer(compared(binary, slower, f"planted {trial}")))
            throttled.append(answer(compared(binary, half_speed(trial), f"throttled {trial}")))
    yield different("real: equal called different", equal)
    yield found("real: 5 % more work found", planted)
    hits = throttled.count("equal")
    yield rate("real: half speed in 15 % of runs called equal", hits, trials, 0.0, MAX_FALSE)


def half_speed(seed: int) -> Iterator[int]:
    """Units of work of each run: twice as many in a share of them."""
    drawn = Random(seed)
    while True:
        yield 2 * UNITS if drawn.random() < HALF_SPEED_SHARE else UNITS


def compared(binary: str, others_units: Iterator[int], seed: str) -> list[Sample]:
    """Run a whole comparison here, in an order drawn from the seed."""
    design = replace(DESIGN, seed=seed)
    units: dict[Case, Iterator[int]] = {BASE: repeat(UNITS), OTHER: others_units}
    seen: list[Sample] = []
    for number in count():
        cases = next_round(design, seen, math.inf)
        if not cases:
            return seen
        seen += [turn(binary, case, next(units[case]), number) for case in cases]
    raise AssertionError("unreachable")


def turn(binary: str, case: Case, units: int, number: int) -> Sample:
    before = engine.here().look()
    outcome = engine.here().run(Launch(argv=(binary, "work", str(units)), limit_seconds=60.0))
    state = engine.state_between(before, engine.here().look(), outcome.usage)
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
