"""Our MPI latency, bandwidth and allreduce against OSU's, interleaved A B B A: within 5 %.

`python benchmarks/mpi.py [--json] [--rounds N] [--osu FAMILY=DIR ...]`
FAMILY is openmpi or mpich; DIR holds osu_latency, osu_bw and osu_allreduce built with that MPI
(anywhere below it). Debian has no package of them: without --osu, only our own numbers are shown.
Our program verifies all data that it sends. OSU prints two decimals of a microsecond, so half of
the last one is allowed in addition to the 5 %.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from flowos.model import Case, Exited, Outcome, Sample, Unmeasured, Verdict
from flowos.plan._compare import compare
from flowos.probes import mpi
from flowos.probes.mpi import MpiPairs

MARGIN = 0.05
HALF_DIGIT = 0.5e-8
SIZES = ("8", "1024", "8192", "65536", "1048576")
SOURCE = Path(mpi.__file__).parent / "programs" / "mpi_pairs.c"
OSU = {"latency": "osu_latency", "bandwidth": "osu_bw", "allreduce": "osu_allreduce"}
UNITS = {"latency": ("second", 1e-6), "bandwidth": ("byte/s", 1e6), "allreduce": ("second", 1e-6)}


@dataclass(frozen=True)
class Family:
    name: str
    compiler: str
    mpirun: tuple[str, ...]


FAMILIES = (
    Family("openmpi", "mpicc.openmpi", ("mpirun.openmpi", "--bind-to", "core", "-n", "2")),
    Family("mpich", "mpicc.mpich", ("mpiexec.mpich", "-bind-to", "core", "-n", "2")),
)


def main() -> int:
    args = parsed()
    folders = {name: Path(at) for name, _, at in (word.partition("=") for word in args.osu)}
    families = [f for f in FAMILIES if shutil.which(f.compiler)]
    if not families:
        sys.exit("mpi: no MPI was found: apt install openmpi-bin libopenmpi-dev mpich libmpich-dev")
    with tempfile.TemporaryDirectory() as folder:
        samples = [
            sample
            for family in families
            for sample in measured(family, Path(folder), folders.get(family.name), args.rounds)
        ]
    verdicts = compare(samples, axis="program", base="osu", margin=MARGIN, looks=1)
    found = [row_of(samples, v) for v in verdicts]
    without = sorted({f.name for f in families} - set(folders))
    answer = {
        "claim": "within 5 % of the OSU benchmarks",
        "compared": found,
        "not compared": f"no --osu for {', '.join(without)}" if without else "",
        "medians": medians(samples),
    }
    print(json.dumps(answer, indent=1))
    return 0 if all(f["agrees"] for f in found) else 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--osu", action="append", default=[], metavar="FAMILY=DIR")
    return parser.parse_args()


def measured(family: Family, folder: Path, osu: Path | None, rounds: int) -> list[Sample]:
    binary = folder / family.name
    subprocess.run([family.compiler, "-O2", str(SOURCE), "-o", str(binary)], check=True)
    turns = ("ours", "osu", "osu", "ours") if osu else ("ours", "ours")
    return [
        sample
        for number in range(rounds)
        for program in turns
        for sample in (
            of_osu(family, osu, number)
            if program == "osu" and osu
            else ours(family, binary, number)
        )
    ]


def started(family: Family, *words: str) -> Outcome:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [*family.mpirun, *words], env={**os.environ, **root}, capture_output=True, check=False
    )
    return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)


def ours(family: Family, binary: Path, number: int) -> list[Sample]:
    readings = MpiPairs().read(Case("mpi"), started(family, str(binary), "9", "0.004"))
    if isinstance(readings, Unmeasured):
        sys.exit(f"mpi: {family.name}: {readings.reason}")
    return [
        sample(family, "ours", number, r.metric, dict(r.levels)["bytes"], median(r.values))
        for r in readings
        if dict(r.levels)["bytes"] in SIZES
    ]


def of_osu(family: Family, folder: Path, number: int) -> list[Sample]:
    found = []
    for metric, name in OSU.items():
        program = next((p for p in sorted(folder.rglob(name)) if os.access(p, os.X_OK)), None)
        if program is None or program.is_dir():
            sys.exit(f"mpi: no {name} below {folder}")
        lines = started(family, str(program)).stdout.decode().splitlines()
        rows = (line.split() for line in lines if line[:1].isdigit())
        found += [
            sample(family, "osu", number, metric, size, float(value) * UNITS[metric][1])
            for size, value, *_ in rows
            if size in SIZES
        ]
    return found


def sample(
    family: Family, program: str, number: int, metric: str, size: str, value: float
) -> Sample:
    return Sample(
        run="benchmark",
        case=Case("mpi", levels=(("program", program), ("mpi", family.name), ("bytes", size))),
        round=number,
        metric=metric,
        unit=UNITS[metric][0],
        values=(value,),
    )


def row_of(samples: list[Sample], verdict: Verdict) -> dict[str, object]:
    of_osu = [
        s.values[0]
        for s in samples
        if s.metric == verdict.metric and {("program", "osu"), *verdict.rest} == set(s.case.levels)
    ]
    printed = HALF_DIGIT / median(of_osu) if UNITS[verdict.metric][0] == "second" else 0.0
    return {
        "metric": verdict.metric,
        **dict(verdict.rest),
        "goodness_ratio": round(verdict.ratio, 4),
        "interval": [round(verdict.low, 4), round(verdict.high, 4)],
        "rounds": verdict.rounds,
        "agrees": abs(verdict.ratio - 1) <= MARGIN + printed,
        "why": verdict.why,
    }


def medians(samples: list[Sample]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for s in samples:
        values.setdefault(f"{s.metric} {s.case.label}, {s.unit}", []).extend(s.values)
    return {name: median(found) for name, found in values.items()}


if __name__ == "__main__":
    sys.exit(main())
