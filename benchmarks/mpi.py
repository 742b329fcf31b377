"""Our MPI numbers against OSU's, IMB's and NetPIPE's, interleaved A B B A: within 5 %.

`python benchmarks/mpi.py [--json] [--rounds N] [--osu FAMILY=DIR ...] [--imb VENV]`
FAMILY is openmpi or mpich; DIR holds OSU's programs built with that MPI (anywhere below it):
neither Debian nor PyPI has them. IMB comes with Intel MPI (`python -m venv VENV && VENV/bin/pip
install impi-rt impi-devel`), and is run with that and MPICH, as Open MPI has another binary
interface. NetPIPE is run where it is (`apt install netpipe-openmpi netpipe-mpich2`): its ping-pong
alone, of which it gives the best of seven trials. `agree` says for each MPI and each of them how
many numbers do; an MPI that there is none for is `not compared`, and our own numbers are shown.
Turns are of one size of messages, so that both numbers of a pair are taken seconds apart.

Our program verifies all data that it sends. They print two decimals of a microsecond, so half of
the last one is allowed in addition to the 5 %. `best_ratio` is of the best of all rounds: where
others use the cores, medians say when they did.

Like is compared with like: OSU's means over all iterations, and IMB's, with ours, those of OSU of
as many iterations; OSU's medians of iterations (-z) with our medians of repetitions; NetPIPE's best
trial with our best repetition. An interruption of 10 ms makes a mean over 40 ms a quarter larger,
and leaves a median as it is.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, harmonic_mean, median

from _mpi_peers import (
    FAMILIES,
    NETPIPE,
    SIZES,
    Family,
    Numbers,
    Statistics,
    intel_mpi,
    of_imb,
    of_netpipe,
    of_osu,
)
from _numbers import whole_number

from flowos.model import Case, Sample, Unmeasured, Verdict
from flowos.plan._compare import compare
from flowos.probes import mpi
from flowos.probes.mpi import MpiPairs

MARGIN = 0.05
HALF_DIGIT = 0.5e-8
SOURCE = Path(mpi.__file__).parent / "programs" / "mpi_pairs.c"
LONGEST = SIZES[-1]
UNITS = {"latency": "second", "allreduce": "second", "message_rate": "1/s"}
STATISTICS = {"OSU": ("mean", "median"), "IMB": ("mean",), "NetPIPE": ("best",), "": ("median",)}
Theirs = Callable[[str, Numbers], Statistics]
"""Numbers of messages of so many bytes, of about as many iterations as gave ours."""


@dataclass(frozen=True)
class Contest:
    """Our program and another one, if there is one, with the same MPI."""

    family: Family
    binary: Path
    against: str = ""
    theirs: Theirs | None = None


def main() -> int:
    args = parsed()
    with tempfile.TemporaryDirectory() as folder:
        found = list(contests(args, Path(folder)))
        if not found:
            sys.exit("mpi: no MPI was found: apt install openmpi-bin libopenmpi-dev mpich")
        samples = [
            sample
            for number in range(args.rounds)
            for contest in found
            for size in SIZES
            for sample in round_of(contest, size, number)
        ]
    verdicts = compare(samples, axis="program", base="theirs", margin=MARGIN, looks=1)
    both = [v for v in verdicts if all(sides(samples, v))]
    rows = [row_of(samples, v) for v in both]
    answer = {
        "claim": "within 5 % of the OSU benchmarks, of IMB and of NetPIPE",
        "agree": agreement(rows),
        "compared": rows,
        "not compared": ", ".join(c.family.name for c in found if c.theirs is None),
        "medians": medians(samples),
    }
    print(json.dumps(answer, indent=1))
    return 0 if all(row["agrees"] for row in rows) else 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=8)
    parser.add_argument("--osu", action="append", default=[], metavar="FAMILY=DIR")
    parser.add_argument("--imb", type=Path, metavar="VENV")
    return parser.parse_args()


def contests(args: argparse.Namespace, folder: Path) -> Iterator[Contest]:
    osu = {name: Path(at) for name, _, at in (word.partition("=") for word in args.osu)}
    families = [f for f in FAMILIES if shutil.which(f.compiler)]
    for family in (*families, *([intel_mpi(args.imb)] if args.imb else [])):
        binary = built(family, folder)
        against = dict(peers(family, binary, osu.get(family.name), args.imb))
        for name, theirs in against.items():
            yield Contest(family, binary, name, theirs)
        if not against:
            yield Contest(family, binary)


def peers(
    family: Family, binary: Path, osu: Path | None, imb: Path | None
) -> Iterator[tuple[str, Theirs]]:
    if osu:
        yield "OSU", partial(of_osu, family, osu)
    if imb and family.name != "openmpi":
        yield "IMB", printed("mean", partial(of_imb, family, imb, binary))
    if program := shutil.which(NETPIPE.get(family.name, "")):
        yield "NetPIPE", printed("best", partial(of_netpipe, family, program))


def printed(statistic: str, measure: Callable[[str], Numbers]) -> Theirs:
    return lambda size, _: {statistic: measure(size)}


def built(family: Family, folder: Path) -> Path:
    binary = folder / family.name
    words = [family.compiler, "-O2", str(SOURCE), "-o", str(binary), "-ldl"]
    subprocess.run(words, check=True, env={**os.environ, **family.variables})
    return binary


def round_of(contest: Contest, size: str, number: int) -> Iterator[Sample]:
    first = ours(contest, size)
    yield from samples_of(contest, size, number, "ours", first)
    if contest.theirs:
        for _ in range(2):
            found = contest.theirs(size, first["median"])
            yield from samples_of(contest, size, number, "theirs", found)
    yield from samples_of(contest, size, number, "ours", ours(contest, size))


def samples_of(
    contest: Contest, size: str, number: int, program: str, found: Statistics
) -> Iterator[Sample]:
    for statistic in STATISTICS[contest.against]:
        for metric, value in found[statistic].items():
            levels = {
                "program": program,
                "mpi": contest.family.name,
                "against": contest.against,
                "bytes": size,
                "statistic": statistic,
            }
            yield Sample(
                run="benchmark",
                case=Case("mpi", levels=tuple(levels.items())),
                round=number,
                metric=metric,
                unit=UNITS.get(metric, "byte/s"),
                values=(value,),
            )


def ours(contest: Contest, size: str) -> Statistics:
    outcome = contest.family.run(str(contest.binary), "9", "0.004", LONGEST, size)
    readings = MpiPairs().read(Case("mpi"), outcome)
    if isinstance(readings, Unmeasured):
        sys.exit(f"mpi: {contest.family.name}: {readings.reason}")
    return {
        "mean": {r.metric: mean_of(r.metric, r.values) for r in readings},
        "median": {r.metric: median(r.values) for r in readings},
        "best": {r.metric: best_of(r.metric, r.values) for r in readings},
    }


def mean_of(metric: str, values: Sequence[float]) -> float:
    """Of all iterations: repetitions have equally many, so that of rates times are averaged."""
    return fmean(values) if UNITS.get(metric) == "second" else harmonic_mean(values)


def best_of(metric: str, values: Sequence[float]) -> float:
    return min(values) if UNITS.get(metric) == "second" else max(values)


def sides(samples: list[Sample], verdict: Verdict) -> list[list[float]]:
    """Ours and theirs; [] for what the other program does not measure."""
    return [
        [
            s.values[0]
            for s in samples
            if s.metric == verdict.metric
            and {("program", program), *verdict.rest} == set(s.case.levels)
        ]
        for program in ("ours", "theirs")
    ]


def row_of(samples: list[Sample], verdict: Verdict) -> dict[str, object]:
    mine, theirs = sides(samples, verdict)
    is_time = UNITS.get(verdict.metric) == "second"
    own, peer = best_of(verdict.metric, mine), best_of(verdict.metric, theirs)
    ratio = peer / own if is_time else own / peer
    allowed = MARGIN + (HALF_DIGIT / median(theirs) if is_time else 0.0)
    return {
        "metric": verdict.metric,
        **dict(verdict.rest),
        "goodness_ratio": round(verdict.ratio, 4),
        "interval": [round(verdict.low, 4), round(verdict.high, 4)],
        "best_ratio": round(ratio, 4),
        "rounds": verdict.rounds,
        "agrees": abs(verdict.ratio - 1) <= allowed,
        "best_agrees": abs(ratio - 1) <= allowed,
        "why": verdict.why,
    }


def agreement(rows: list[dict[str, object]]) -> dict[str, str]:
    """For each MPI, what it is compared with and how: how many numbers agree."""
    found: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        name = f"{row['mpi']}, {row['against']}, {row['statistic']}"
        found.setdefault(name, []).append(row)
    return {
        name: f"{sum(bool(r['agrees']) for r in its)} of {len(its)} within 5 % by medians,"
        f" {sum(bool(r['best_agrees']) for r in its)} by the best"
        for name, its in found.items()
    }


def medians(samples: list[Sample]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for s in samples:
        values.setdefault(f"{s.metric} {s.case.label}, {s.unit}", []).extend(s.values)
    return {name: median(found) for name, found in values.items()}


if __name__ == "__main__":
    sys.exit(main())
