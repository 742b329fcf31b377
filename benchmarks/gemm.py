"""Every BLAS found against the flop ceiling, interleaved A B .. B A: the best reaches 85 % of it.

`python benchmarks/gemm.py [--json] [--rounds N] [--minutes M] [--n 2048,4096]`
A share is the best product of a turn over the ceiling (of its instruction set, type and cores) of
the same round; printed are the median over rounds, the lowest and the highest. Rounds end after M
minutes, but there are at least two. A library's default, if it also has forced kernels, gets a
third of their time: it may not exceed a ceiling either, but the claim does not depend on it. Every
product is checked by the program itself (Freivalds), every ceiling kernel checks its registers.
Exit 1 when no library reaches 85 % of the f64 ceiling on one core and on all, or one is above 102 %
of any.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from _numbers import positive, whole_number, whole_numbers

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    Killed,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.operations._facts import facts
from flowos.probes import Probe, gemm
from flowos.probes.flops import Flops
from flowos.probes.gemm import Gemm

PROGRAMS = Path(gemm.__file__).parent / "programs"
MIN_SHARE, MAX_SHARE = 0.85, 1.02
MIN_ROUNDS = 2
SECONDS = 3.0
"""For the products of a case in one turn, both types together."""

Point = tuple[str, str, str, str]
"""Cores, library ("" for the ceiling), instruction set, type."""
Round = dict[Point, tuple[float, str]]
"""The best rate of each point, and the kernel that gave it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=4, help="at most (default 4)")
    parser.add_argument("--minutes", type=positive, default=2.5, help="default 2.5")
    parser.add_argument(
        "--n", type=whole_numbers(), default="2048,4096", help="sizes of the matrices"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        turns = list(cases(",".join(map(str, asked.n))))
        rounds = list(rounds_of(turns, Path(folder), asked.rounds, 60 * asked.minutes))
    table = [row_of(point, rounds) for point in sorted(rounds[0]) if point[1]]
    best = {
        cores: max(row["share"] for row in table if row["cores"] == cores and row["type"] == "f64")
        for cores in {row["cores"] for row in table}
    }
    holds = min(best.values()) >= MIN_SHARE and all(row["share"] <= MAX_SHARE for row in table)
    claim = f"the best library reaches {MIN_SHARE:.0%} of the f64 ceiling, none exceeds its ceiling"
    print(json.dumps({"claim": claim, "holds": holds, "best": best, "table": table}, indent=1))
    return 0 if holds else 1


def rounds_of(
    turns: list[tuple[Probe, Case]], folder: Path, max_rounds: int, seconds: float
) -> Iterator[Round]:
    """Run rounds while one more fits, by the time of the longest."""
    ends = monotonic() + seconds
    longest = 0.0
    for number in range(max_rounds):
        began = monotonic()
        if number >= MIN_ROUNDS and began + longest > ends:
            return
        yield rates(turns, folder)
        longest = max(longest, monotonic() - began)


def cases(sizes: str) -> Iterator[tuple[Probe, Case]]:
    """The ceiling, then each library by default and with its widest kernels, on 1 core and all."""
    here = facts()
    yield from ((Flops(), case) for case in found(Flops(), here, "quick"))
    products = [
        case
        for case in found(Gemm(), here, "normal")
        if case.level("isa") in ("default", case.detail("widest"))
    ]
    forced = {c.level("library") for c in products if c.level("isa") != "default"}
    for case in products:
        is_compared = case.level("isa") == "default" and case.level("library") in forced
        seconds = SECONDS / 3 if is_compared else SECONDS
        given = {**dict(case.details), "sizes": sizes, "seconds": f"{seconds:g}"}
        yield Gemm(), replace(case, details=tuple(given.items()))


def found(probe: Probe, here: Facts, effort: Effort) -> tuple[Case, ...]:
    answer = probe.cases(here, MeasurementRequest(effort=effort))
    if isinstance(answer, Unmeasured):
        sys.exit(f"gemm: {answer.reason}; {answer.remedy}")
    return answer


def rates(turns: list[tuple[Probe, Case]], folder: Path) -> Round:
    """One round, in both orders."""
    best: Round = {}
    for probe, case in (*turns, *reversed(turns)):
        for reading in measured(probe, case, folder):
            at = case.at(**dict(reading.levels))
            point = (at.level("cores"), at.level("library"), at.level("isa"), at.level("type"))
            rate = (max(reading.values), dict(reading.notes)["kernel"])
            best[point] = max(best.get(point, rate), rate)
    return best


def measured(probe: Probe, case: Case, folder: Path) -> tuple[Reading, ...]:
    program = probe.program(case)
    assert program.build is not None
    binary = folder / program.build.key
    if not binary.exists():
        source = str(PROGRAMS / program.build.source)
        words = (program.build.compiler, *program.build.flags, source, "-o", str(binary))
        subprocess.run((*words, *program.build.libraries), check=True)
    done = subprocess.run(
        (str(binary), *program.argv),
        capture_output=True,
        check=False,
        env={**os.environ, **dict(program.variables)},
    )
    code = done.returncode
    end = Exited(code) if code >= 0 else Killed(-code)
    answer = probe.read(case, Outcome(end=end, stdout=done.stdout, stderr=done.stderr))
    if isinstance(answer, Unmeasured):
        print(f"gemm: {case.label}: {answer.reason}", file=sys.stderr)
        return ()
    return answer


def row_of(point: Point, rounds: list[Round]) -> dict[str, Any]:
    """A library's row: its rate, and its share of the same round's ceiling."""
    cores, library, isa, kind = point
    shares = [one[point][0] / ceiling(one, point) for one in rounds if point in one]
    return {
        "cores": cores,
        "library": library,
        "isa": isa,
        "type": kind,
        "kernel": rounds[0][point][1],
        "gflops": round(max(one[point][0] for one in rounds if point in one) / 1e9, 1),
        "share": round(median(shares), 3),
        "low": round(min(shares), 3),
        "high": round(max(shares), 3),
    }


def ceiling(one: Round, point: Point) -> float:
    """The ceiling of the point's instruction set; for a default, of the widest."""
    cores, _, isa, kind = point
    return max(
        rate
        for (its_cores, library, its_isa, its_kind), (rate, _) in one.items()
        if not library and (its_cores, its_kind) == (cores, kind) and isa in ("default", its_isa)
    )


if __name__ == "__main__":
    sys.exit(main())
